"""What is judged: a checkpoint or a bundle's target, behind one way to ask it texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from app.backends import make_backend
from app.bundle import MANIFEST, TOKENIZER, Bundle, Label
from app.engine import TARGETS
from app.errors import BundleError
from app.fallback import FOLDER as FALLBACK
from app.fallback import Fallback
from app.ranking import Ranker
from app.tokenization import Tokenizer
from models.checkpoint import RECORD, CheckpointError, load_model, load_record
from models.compiling.predictor import Predictor
from models.training.scores import Floats, softmax

Answer = Callable[[Sequence[str]], Floats]  # normalised texts → probabilities [texts, labels]


@dataclass(frozen=True, slots=True)
class Subject:
    """A model that isn't loaded yet; all that can be checked beforehand is here."""

    name: str  # of a report: path, and name@version and target where it is a bundle
    labels: list[Label]
    max_tokens: int
    label_priors: dict[str, float]
    abstain_threshold: float
    group_thresholds: dict[str, float]
    load: Callable[[], Answer]
    notes: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        return [label.name for label in self.labels]

    @property
    def groups(self) -> list[str]:
        """In the order in which the labels name them first."""
        return list(dict.fromkeys(label.group for label in self.labels))

    @property
    def group_of(self) -> np.ndarray[Any, np.dtype[np.intp]]:
        """[labels] indices into ``groups``."""
        return np.array([self.groups.index(label.group) for label in self.labels])


def find_subject(where: str) -> Subject:
    """A bundle's folder (its best target), ``BUNDLE:TARGET``, or a checkpoint's folder.

    Raises ``BundleError`` or ``CheckpointError`` when it's none of them.
    """
    folder, _, target = where.rpartition(":")
    if not (Path(where) / MANIFEST).is_file() and folder and (Path(folder) / MANIFEST).is_file():
        return bundle_subject(Path(folder), target)
    if (Path(where) / MANIFEST).is_file():
        return bundle_subject(Path(where))
    if (Path(where) / "config.json").is_file():
        return checkpoint_subject(Path(where))
    raise CheckpointError(f"{where}: neither a bundle ({MANIFEST}), BUNDLE:TARGET, nor a checkpoint (config.json)")


def bundle_subject(folder: Path, target: str | None = None) -> Subject:
    """A compiled target, or the fallback, as the service runs it; without ``target`` the best that the bundle has.

    Raises ``BundleError`` when the bundle is damaged or has no such target.
    """
    bundle = Bundle(folder)
    if target == FALLBACK:
        return _fallback_subject(bundle)
    target = target or next((name for name in TARGETS if name in bundle.targets), next(iter(TARGETS)))
    if target not in TARGETS:
        raise BundleError(
            f"bundle {folder}: target {target!r} can't be judged here, only {', '.join([*TARGETS, FALLBACK])}"
        )
    bundle.target(target)
    manifest = bundle.manifest
    return Subject(
        f"{folder}:{target} ({bundle.name})",
        list(manifest.labels),
        manifest.max_tokens,
        manifest.label_priors,
        manifest.abstain_threshold,
        manifest.group_thresholds,
        partial(_load_target, bundle, target),
    )


def checkpoint_subject(folder: Path) -> Subject:
    """A checkpoint in float32, with or without the ``training.json`` that training leaves.

    Raises ``CheckpointError`` when a file is missing or broken.
    """
    # Here, since judging a compiled target needs no torch.
    from models.architectures import ADAPTERS, UnsupportedCheckpoint
    from models.compiling.reference import Reference
    from models.compiling.source import read_source

    try:
        source = read_source(folder)
    except UnsupportedCheckpoint:
        if not (folder / RECORD).is_file():
            raise CheckpointError(f"{folder}: neither {RECORD} nor one of {', '.join(ADAPTERS)}") from None
        return _unpacked_subject(folder)
    priors = source.label_priors or dict.fromkeys([label.name for label in source.labels], 1 / len(source.labels))
    return Subject(
        str(folder),
        source.labels,
        source.max_tokens,
        priors,
        source.abstain_threshold,
        source.group_thresholds,
        lambda: Reference(source).probabilities,
        source.assumed,
    )


def _fallback_subject(bundle: Bundle) -> Subject:
    fallback = Fallback(bundle)
    return Subject(
        f"{bundle.path}:{FALLBACK} ({bundle.name})",
        list(bundle.manifest.labels),
        bundle.manifest.max_tokens,
        bundle.manifest.label_priors,
        fallback.manifest.abstain_threshold,
        fallback.manifest.group_thresholds,
        lambda: fallback.probabilities,
    )


def _load_target(bundle: Bundle, name: str) -> Answer:
    manifest, target, embeddings = bundle.manifest, bundle.target(name), bundle.embeddings()
    model = make_backend(bundle.path / name, target, labels=len(manifest.labels), null_ms=0).load(0)
    tokenizer = Tokenizer(bundle.path / TOKENIZER, max_tokens=manifest.max_tokens, vocabulary=len(embeddings.word))
    predictor = Predictor(
        model,
        embeddings,
        Ranker(manifest.labels, temperature=manifest.temperature),
        tokens=target.buckets[-1],
        pooling=manifest.pooling,
        one_query_a_row=target.one_query_a_row,
    )
    return lambda texts: predictor.probabilities([tokenizer.encode(text).ids for text in texts])


def _unpacked_subject(folder: Path) -> Subject:
    """An architecture that training knows and packing doesn't: asked in padded batches, as in training."""
    record = load_record(folder)

    def load() -> Answer:
        from transformers import AutoTokenizer

        from models.training.encoded import Encoded, predict

        model, tokenizer = load_model(folder), AutoTokenizer.from_pretrained(folder, local_files_only=True)
        return lambda texts: softmax(
            predict(model, Encoded(tokenizer, texts, record.max_tokens), model.device), record.temperature
        )

    return Subject(
        str(folder),
        [Label(name=each.name, definition=each.definition, group=each.group) for each in record.labels],
        record.max_tokens,
        record.label_priors,
        record.abstain_threshold,
        record.group_thresholds,
        load,
    )
