"""Whether confidence holds where the labels' shares are others than in training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from models.evaluation.judged import Judged
from models.evaluation.priors import reweight
from models.evaluation.reliability import calibration_error, reliability
from models.training.scores import Floats

AS_IS = "as is"


def mix_scores(raw: Judged, training: Floats, mixes: Mapping[str, Floats]) -> dict[str, Any]:
    """ECE and accuracy with the confidence as it is and corrected for the mix: the rows' own, and each of ``mixes``.

    ``raw`` holds the model's uncorrected probabilities. Rows stand for a mix by importance weights: its share of the
    row's label over the label's share among the rows. Labels without rows can't be judged; the others of their group
    stand for them, and a mix whose group has no rows at all is None.
    """
    counts = np.bincount(raw.truth, minlength=len(raw.labels))
    # One row more for each label, or a label without rows could never be answered.
    own = (counts + 1) / (counts + 1).sum()
    found: dict[str, Any] = {AS_IS: _scores(raw, np.ones(len(raw)), training, own)}
    for name, shares in mixes.items():
        weights = importance(raw, shares)
        found[name] = None if weights is None else _scores(raw, weights, training, shares)
    return found


def importance(raw: Judged, shares: Floats) -> Floats | None:
    """Weights [n] with a mean of 1 that make the rows a sample of the mix ``shares`` [labels]."""
    counts = np.bincount(raw.truth, minlength=len(raw.labels))
    present = shares * (counts > 0)
    for group in range(len(raw.groups)):
        inside = raw.group_of == group
        if shares[inside].sum() > 0 and present[inside].sum() == 0:
            return None
        if shares[inside].sum() > 0:
            present[inside] *= shares[inside].sum() / present[inside].sum()
    of_label: Floats = np.divide(present * len(raw), counts, out=np.zeros(len(counts)), where=counts > 0)
    weights: Floats = of_label[raw.truth]
    return weights


def _scores(raw: Judged, weights: Floats, training: Floats, shares: Floats) -> dict[str, Any]:
    corrected = raw.given(reweight(raw.probabilities, training, shares))
    return {
        "shares": dict(zip(raw.labels, shares.tolist(), strict=True)),
        # Of how many equal rows these weights are worth (Kish, 1965): few rows of a label that is frequent in the mix
        # say little, however many rows there are in all.
        "effective_n": float(weights.sum() ** 2 / np.sum(weights**2)),
        "uncorrected": _calibration(raw, weights),
        "corrected": _calibration(corrected, weights),
    }


def _calibration(judged: Judged, weights: Floats) -> dict[str, float]:
    group_confidence = judged.group_probabilities.max(axis=1)
    return {
        "accuracy": float(np.average(judged.is_right, weights=weights)),
        "group_accuracy": float(np.average(judged.group_is_right, weights=weights)),
        "ece": calibration_error(reliability(judged.confidence, judged.is_right, weights)),
        "group_ece": calibration_error(reliability(group_confidence, judged.group_is_right, weights)),
    }
