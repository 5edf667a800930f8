"""Logits to ranked intents: calibrated probabilities, summed by group, largest first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.bundle import Label


class Ranked(NamedTuple):
    """Pairs (name, confidence), the most confident first; each list's confidences add up to 1."""

    intents: list[tuple[str, float]]
    groups: list[tuple[str, float]]


class Thresholds(NamedTuple):
    """The confidence that an answer must reach: its intent, and its group where that has one."""

    intent: float
    groups: Mapping[str, float]

    def are_reached(self, ranked: Ranked) -> bool:
        (_, confidence), (group, group_confidence) = ranked.intents[0], ranked.groups[0]
        return confidence >= self.intent and group_confidence >= self.groups.get(group, 0.0)


class Ranker:
    """Softmax at the bundle's temperature (Guo et al. 2017), then groups as sums over their labels.

    ``shift`` is added to the scaled logits, one number a label: the deployment's priors (``app/priors.py``).
    ``group`` and ``intent`` may disagree: three help labels at 0.2 each outweigh one product label at 0.4.
    """

    def __init__(self, labels: Sequence[Label], *, temperature: float, shift: Sequence[float] | None = None) -> None:
        self.intents = [label.name for label in labels]
        self.groups = list(dict.fromkeys(label.group for label in labels))
        self._temperature = temperature
        self._shift = None if shift is None else list(shift)
        self._members = [[place for place, label in enumerate(labels) if label.group == group] for group in self.groups]
        self._membership = np.array(
            [[label.group == group for group in self.groups] for label in labels], np.float64
        )  # (labels, groups)

    def probabilities(self, logits: NDArray[np.float32]) -> NDArray[np.float64]:
        """Logits [n, labels] to probabilities [n, labels]."""
        scaled = logits.astype(np.float64) / self._temperature
        if self._shift is not None:
            scaled += self._shift
        exponents: NDArray[np.float64] = np.exp(scaled - scaled.max(axis=1, keepdims=True))
        exponents /= exponents.sum(axis=1, keepdims=True)
        return exponents

    def rank(self, logits: NDArray[np.float32]) -> list[Ranked]:
        """Logits [n, labels] float32 to one ``Ranked`` a row."""
        if len(logits) == 1:
            return [self._rank_one(logits[0].tolist())]
        probabilities = self.probabilities(logits)
        intents = _sorted_pairs(self.intents, probabilities)
        groups = _sorted_pairs(self.groups, probabilities @ self._membership)
        return list(map(Ranked, intents, groups))

    def _rank_one(self, logits: list[float]) -> Ranked:
        """The same without numpy, whose calls take twice as long for a dozen numbers: most rows hold one query."""
        scaled = [logit / self._temperature for logit in logits]
        if self._shift is not None:
            scaled = [each + shift for each, shift in zip(scaled, self._shift, strict=True)]
        largest = max(scaled)
        exponents = [math.exp(each - largest) for each in scaled]
        total = sum(exponents)
        confidences = [each / total for each in exponents]
        groups = [sum(confidences[place] for place in members) for members in self._members]
        return Ranked(_sorted_pair(self.intents, confidences), _sorted_pair(self.groups, groups))


def _sorted_pair(names: list[str], confidences: list[float]) -> list[tuple[str, float]]:
    order = sorted(range(len(names)), key=confidences.__getitem__, reverse=True)  # stable, like the other
    return [(names[place], round(confidences[place], 6)) for place in order]


def _sorted_pairs(names: list[str], confidences: NDArray[np.float64]) -> list[list[tuple[str, float]]]:
    # Sorting for the whole row at once; a stable sort, so that ties are in the labels' order on every machine.
    order = (-confidences).argsort(axis=1, kind="stable").tolist()
    # Six digits: more is noise of the arithmetic, and costs bytes in every reply.
    rounded = confidences.round(6).tolist()
    return [[(names[place], row[place]) for place in places] for places, row in zip(order, rounded, strict=True)]
