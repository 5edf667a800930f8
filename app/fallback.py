"""The fallback: a bundle's small student of its model, for the queries that the model can't answer in time.

It needs the normalised text alone, no token ids, no engine and no thread, so the event loop asks it in passing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from app.bundle import Bundle, Probability, Strict, read_json
from app.errors import BundleError
from app.priors import group_thresholds, log_shift
from app.ranking import Ranked, Ranker, Thresholds
from app.student import FEATURES, Scorer, Student

FOLDER = "fallback"  # of a bundle
MANIFEST = "fallback.json"
WEIGHTS = "weights.safetensors"


class FallbackManifest(Strict):
    """``fallback/fallback.json``: what the weights need beside them, and how far their answers are from the model's."""

    features: int
    temperature: Annotated[float, Field(gt=0)]
    abstain_threshold: Probability
    group_thresholds: dict[str, Probability]
    agreement: dict[str, Any]  # with fp32, measured when it was made
    options: dict[str, Any]

    @field_validator("features")
    @classmethod
    def _features_are_these(cls, value: int) -> int:
        if value != FEATURES:
            raise ValueError(f"of version {value}, this version has {FEATURES}: make the fallback again")
        return value


class Fallback:
    """A bundle's fallback, its confidences calibrated by its own temperature, and what they have to reach.

    ``priors`` are the deployment's label shares: a student that learned from the model's answers takes the labels'
    shares to be what the model does. Raises ``BundleError`` when the bundle has none or it is damaged.
    """

    def __init__(self, bundle: Bundle, *, priors: Mapping[str, float] | None = None) -> None:
        if not has_fallback(bundle):
            raise BundleError(
                f"bundle {bundle.path}: has no fallback; make it with: query-intent compile --target fallback"
            )
        labels, training = bundle.manifest.labels, bundle.manifest.label_priors
        self.manifest = read_json(bundle.path / FOLDER / MANIFEST, FallbackManifest)
        self._scorer = Scorer(_read_student(bundle))
        shift, by_group = None, self.manifest.group_thresholds
        if priors is not None:
            shift = log_shift(priors, training={label.name: training[label.name] for label in labels})
            by_group = group_thresholds(
                by_group, {label.name: label.group for label in labels}, priors, training=training
            )
        self._ranker = Ranker(labels, temperature=self.manifest.temperature, shift=shift)
        self.thresholds = Thresholds(self.manifest.abstain_threshold, by_group)

    def answer(self, text: str) -> Ranked:
        """The ranked intents of a normalised text."""
        return self._ranker.rank(self._scorer.logits(text))[0]

    def describe(self) -> dict[str, Any]:
        """Its manifest, with the thresholds that hold here."""
        return self.manifest.model_dump() | {"group_thresholds": self.thresholds.groups}

    def probabilities(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """[texts, labels]."""
        return self._ranker.probabilities(np.concatenate([self._scorer.logits(text) for text in texts]))


def has_fallback(bundle: Bundle) -> bool:
    return f"{FOLDER}/{MANIFEST}" in bundle.manifest.files


def write_fallback(folder: Path, student: Student, manifest: FallbackManifest) -> None:
    """Write both files into ``folder``, the bundle's."""
    folder.mkdir(exist_ok=True)
    save_file(student._asdict(), folder / WEIGHTS)
    (folder / WEIGHTS).chmod(0o644)  # safetensors writes for the owner alone; a container has another user
    (folder / MANIFEST).write_text(manifest.model_dump_json(indent=1) + "\n", encoding="utf-8")


def _read_student(bundle: Bundle) -> Student:
    path = bundle.path / FOLDER / WEIGHTS
    try:
        student = Student(**load_file(path))
    except (OSError, SafetensorError, TypeError) as error:
        raise BundleError(f"bundle {bundle.path}: {FOLDER}/{WEIGHTS} can't be read: {error}") from error
    labels = len(bundle.manifest.labels)
    for name, each in student._asdict().items():
        if each.ndim != (2 if name == "weights" else 1) or each.shape[-1] != labels:
            shape = list(each.shape)
            raise BundleError(
                f"bundle {bundle.path}: {name} {shape} in {FOLDER}/{WEIGHTS} are not for its {labels} labels"
            )
    return student
