"""Whether a confidence means what it says, and what can be bought by answering less often."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.training.scores import Floats

BINS = 15


def reliability(
    confidence: Floats, is_right: NDArray[np.bool_], weights: Floats | None = None, bins: int = BINS
) -> list[dict[str, Any]]:
    """Confidence against accuracy in equal-width bins, empty ones left out.

    All three are [n]; ``weights`` makes the rows stand for another mix. ``share`` of the bins adds up to 1.
    """
    weights = np.ones(len(confidence)) if weights is None else weights
    places = np.minimum((confidence * bins).astype(int), bins - 1)
    found = []
    for place in np.unique(places):
        chosen = places == place
        inside = weights[chosen]
        if inside.sum() == 0:
            continue
        found.append(
            {
                "from": float(place / bins),
                "to": float((place + 1) / bins),
                "n": int(chosen.sum()),
                "share": float(inside.sum() / weights.sum()),
                "confidence": float(np.average(confidence[chosen], weights=inside)),
                "accuracy": float(np.average(is_right[chosen], weights=inside)),
            }
        )
    return found


def calibration_error(bins: list[dict[str, Any]]) -> float:
    """ECE (Guo et al., 2017): the bins' mean gap between confidence and accuracy, each by its share."""
    return float(sum(each["share"] * abs(each["confidence"] - each["accuracy"]) for each in bins))


def coverage_curve(confidence: Floats, is_right: NDArray[np.bool_]) -> tuple[Floats, Floats, Floats]:
    """(threshold, coverage, accuracy of what is covered), the most confident first; one point a distinct confidence."""
    order = np.argsort(-confidence, kind="stable")
    thresholds = confidence[order]
    answered = np.arange(1, len(order) + 1)
    accuracy = np.cumsum(is_right[order]) / answered
    # Rows of one confidence are answered together or not at all.
    last = np.append(thresholds[1:] != thresholds[:-1], True)
    return thresholds[last], (answered / len(order))[last], accuracy[last]


def coverage_table(confidence: Floats, is_right: NDArray[np.bool_]) -> list[dict[str, float]]:
    """The curve at 100, 95, … 50 % coverage: at least so many are answered, by the highest threshold that does it."""
    thresholds, coverage, accuracy = coverage_curve(confidence, is_right)
    # The last point covers everything; rounding must not push 1.0 past it.
    places = [min(int(np.searchsorted(coverage, wanted - 1e-12)), len(coverage) - 1) for wanted in _WANTED]
    return [
        {"threshold": float(thresholds[at]), "coverage": float(coverage[at]), "accuracy": float(accuracy[at])}
        for at in places
    ]


_WANTED = [round(1 - step / 20, 2) for step in range(11)]
