"""What decides the outcome of a training run, and where one stands."""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class Recipe:
    """What decides the outcome of a run besides the rows and the base."""

    epochs: int = 8
    batch_size: int = 64  # queries a step and process
    learning_rate: float = 2e-4  # of the top layer
    # Each layer learns this much slower than the one above: the lower ones hold what carries over to unseen shops.
    layer_decay: float = 0.85
    weight_decay: float = 0.01
    warmup: float = 0.1  # share of all steps
    label_smoothing: float = 0.1
    # A label's weight in the loss is (1 / its share) to this power: 0 ignores imbalance, 1 levels it fully.
    balance: float = 0.5
    # How much a text outside every label weighs against one that has a label.
    outside_weight: float = 0.5
    augment: float = 0.3  # share of the queries of an epoch that get a typo or lose their end
    patience: int = 2  # epochs without a better validation score before stopping
    # Half of MiniLM's weights are its word table. Frozen, a step is a quarter faster and rare words keep their meaning.
    train_embeddings: bool = False
    max_tokens: int = 32
    seed: int = 17


@dataclasses.dataclass
class Progress:
    """Where a run stands; saved with the weights."""

    epoch: int = 0
    step: int = 0  # batches of this epoch that are done
    best_score: float = -1.0
    best_epoch: int = -1
    seconds: float = 0.0
    loss: float = 0.0  # running mean, for the eye only
    history: list[dict[str, float]] = dataclasses.field(default_factory=list)

    def state_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
