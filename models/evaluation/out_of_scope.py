"""Whether a model knows what it doesn't know: queries that belong to none of its intents."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from models.evaluation.intervals import share_of
from models.training.scores import Floats, Ints

IN_SCOPE_ACCURACY = 0.95


def out_of_scope(inside: Floats, truth: Ints, outside: Floats) -> dict[str, Any]:
    """Scores of telling ``outside`` [m, intents] from ``inside`` [n, intents], whose intents are ``truth`` [n].

    Both hold the probabilities of the in-scope intents only: of a model with an intent for the rest, that one's column
    is left out, so that its probability lowers all the others. What is low is out of scope (the maximum softmax
    probability of Hendrycks & Gimpel, 2017).

    ``recall`` is the share of ``outside`` under the highest threshold at which ``IN_SCOPE_ACCURACY`` of ``inside`` are
    still answered, and right; a refused in-scope query counts as wrong, as in Larson et al. (2019). None where no
    threshold is low enough.
    """
    sure_inside, sure_outside = inside.max(axis=1), outside.max(axis=1)
    is_right = inside.argmax(axis=1) == truth
    is_outside = np.concatenate([np.zeros(len(inside)), np.ones(len(outside))])
    curve = [_at(threshold, sure_inside, is_right, sure_outside) for threshold in np.linspace(0, 1, 21)]
    threshold = _highest_threshold(sure_inside, is_right)
    return {
        "in_scope": len(inside),
        "out_of_scope": len(outside),
        "in_scope_accuracy": share_of(is_right),
        "auroc": float(roc_auc_score(is_outside, -np.concatenate([sure_inside, sure_outside]))),
        f"at_{IN_SCOPE_ACCURACY}_in_scope_accuracy": (
            None if threshold is None else _at(threshold, sure_inside, is_right, sure_outside)
        ),
        "curve": curve,
    }


def _highest_threshold(sure: Floats, is_right: NDArray[np.bool_]) -> float | None:
    needed = int(np.ceil(IN_SCOPE_ACCURACY * len(sure) - 1e-9))
    right = np.sort(sure[is_right])
    return float(right[-needed]) if len(right) >= needed else None


def _at(threshold: float, sure_inside: Floats, is_right: NDArray[np.bool_], sure_outside: Floats) -> dict[str, Any]:
    return {
        "threshold": float(threshold),
        "in_scope_accuracy": share_of(is_right & (sure_inside >= threshold)),
        "recall": share_of(sure_outside < threshold),
    }
