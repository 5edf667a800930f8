"""Whether memory grows: samples over time, and their slope."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Sample(NamedTuple):
    """``epoch`` counts the kills so far: a new worker has another level, which is no growth."""

    minutes: float
    mb: float
    epoch: int


def slope_mb_per_min(samples: Sequence[Sample]) -> float | None:
    """The common slope of all epochs, each with a level of its own, by least squares; None of nothing to fit.

    That is the regression with one dummy variable an epoch: times and values are taken from their epoch's mean.
    """
    numerator = denominator = 0.0
    for epoch in {sample.epoch for sample in samples}:
        found = [(sample.minutes, sample.mb) for sample in samples if sample.epoch == epoch]
        minutes, mb = np.array(found, np.float64).T
        minutes -= minutes.mean()
        numerator += float(minutes @ (mb - mb.mean()))
        denominator += float(minutes @ minutes)
    return numerator / denominator if denominator else None
