"""Answers beside the truth, by label and by group, in the forms that the scores need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.training.scores import Floats

Ints = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Judged:
    """``probabilities`` [n, labels] against ``truth`` [n]; ``group_of`` [labels] are indices into ``groups``."""

    probabilities: Floats
    truth: Ints
    labels: list[str]
    groups: list[str]
    group_of: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.truth)

    @cached_property
    def predicted(self) -> Ints:
        highest: Ints = self.probabilities.argmax(axis=1)
        return highest

    @cached_property
    def is_right(self) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = self.predicted == self.truth
        return found

    @cached_property
    def confidence(self) -> Floats:
        """Of the intent, as in a reply."""
        highest: Floats = self.probabilities.max(axis=1)
        return highest

    @cached_property
    def group_probabilities(self) -> Floats:
        """[n, groups]: a group's confidence is the sum over its labels, as in serving."""
        membership = np.eye(len(self.groups))[self.group_of]  # (labels, groups)
        sums: Floats = self.probabilities @ membership
        return sums

    @cached_property
    def group_truth(self) -> Ints:
        return self.group_of[self.truth]

    @cached_property
    def group_predicted(self) -> Ints:
        """The largest sum; it may differ from the group of the largest label."""
        highest: Ints = self.group_probabilities.argmax(axis=1)
        return highest

    @cached_property
    def group_is_right(self) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = self.group_predicted == self.group_truth
        return found

    def is_sure(self, abstain_threshold: float, group_thresholds: Mapping[str, float]) -> NDArray[np.bool_]:
        """[n] whether the service would answer a request that lets it abstain."""
        asked = np.array([group_thresholds.get(group, 0.0) for group in self.groups])[self.group_predicted]
        found: NDArray[np.bool_] = (self.confidence >= abstain_threshold) & (
            self.group_probabilities.max(axis=1) >= asked
        )
        return found

    def only(self, chosen: NDArray[np.bool_]) -> Judged:
        """The rows where ``chosen`` [n] is true."""
        return Judged(self.probabilities[chosen], self.truth[chosen], self.labels, self.groups, self.group_of)

    def given(self, probabilities: Floats) -> Judged:
        """The same rows with other probabilities."""
        return Judged(probabilities, self.truth, self.labels, self.groups, self.group_of)
