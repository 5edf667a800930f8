"""What a row takes on a NeuronCore: AWS's own figures, and a stated scaling from them as a band of two edges.

Nothing here was run on a chip. AWS publishes rows of 128 tokens for two models; everything else is extrapolated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Chip = Literal["inf1", "inf2"]
Edge = Literal["pessimistic", "optimistic"]
EDGES: tuple[Edge, ...] = ("pessimistic", "optimistic")

PUBLISHED_TOKENS = 128


@dataclass(frozen=True, slots=True)
class Instance:
    """``dollars`` an hour: us-east-1, Linux, on demand, July 2026. ``workers`` are the numbers of them to try."""

    name: str
    chip: Chip
    cores: int
    vcpus: int
    dollars: float
    workers: tuple[int, ...]


INSTANCES = (
    Instance("inf1.6xlarge", "inf1", cores=16, vcpus=24, dollars=1.180, workers=(4, 8)),
    Instance("inf2.xlarge", "inf2", cores=2, vcpus=4, dollars=0.758, workers=(1, 2)),
)


@dataclass(frozen=True, slots=True)
class Encoder:
    """A BERT by its size; ``width`` is that of a token between the layers."""

    name: str
    layers: int
    width: int

    def multiply_adds(self, tokens: int) -> int:
        """Of one row: 12 width² a token and layer in the linear maps, and each token with each in attention."""
        return self.layers * (12 * self.width**2 * tokens + 2 * tokens**2 * self.width)


BERT_BASE, DISTILBERT = Encoder("BERT-base", 12, 768), Encoder("DistilBERT", 6, 768)
ENCODERS = (BERT_BASE, DISTILBERT, Encoder("MiniLM 6 x 384", 6, 384), Encoder("ours, 3 x 384", 3, 384))


@dataclass(frozen=True, slots=True)
class Published:
    """A line of AWS's benchmark pages: ``inferences`` a second of ``batch`` rows of 128 tokens on busy ``cores``."""

    batch: int
    cores: int
    inferences: float

    @property
    def seconds(self) -> float:
        """One batch on one core, which does nothing else meanwhile."""
        return self.batch * self.cores / self.inferences


# Inf1: Neuron SDK 2.20, all in bf16. Inf2: SDK 2.26 and 2.27, matrix products in bf16. A row alone, as served here.
ALONE: dict[Chip, Published] = {"inf1": Published(1, 1, 125.7), "inf2": Published(1, 2, 1998)}
# BERT-base and DistilBERT, which has half its layers and is otherwise the same, at the same batch. AWS publishes no
# DistilBERT row alone for Inf1.
HALVED: dict[Chip, tuple[Published, Published]] = {
    "inf1": (Published(8, 4, 1095.4), Published(8, 4, 1875.3)),
    "inf2": (ALONE["inf2"], Published(1, 2, 3402)),
}


def share_beside_layers(chip: Chip) -> float:
    """Of a BERT-base row, what is no layer's: start, transfers, head. It is what half of the layers does not save."""
    whole, half = (each.seconds for each in HALVED[chip])
    return (2 * half - whole) / whole


def row_seconds(chip: Chip, encoder: Encoder, tokens: int, edge: Edge) -> float:
    """One row of ``tokens``, at most 128, alone on one core.

    - optimistic: what the layers take falls with their multiply-adds;
    - pessimistic: only with how many layers there are. A narrower layer or a shorter row leaves the multipliers idle
      and saves nothing.

    What is no layer's stays in both. So both edges give AWS's figures where there are any.
    """
    assert 0 < tokens <= PUBLISHED_TOKENS, "a longer row is another regime than AWS's figures"
    beside = share_beside_layers(chip)
    if edge == "optimistic":
        work = encoder.multiply_adds(tokens) / BERT_BASE.multiply_adds(PUBLISHED_TOKENS)
    else:
        work = encoder.layers / BERT_BASE.layers
    return ALONE[chip].seconds * (beside + (1 - beside) * work)
