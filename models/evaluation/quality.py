"""How good the answers are: over all, by label, by group, by segment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix

from models.evaluation.intervals import macro_share, share, share_of
from models.evaluation.judged import Judged
from models.evaluation.labelled import Labelled
from models.evaluation.reliability import calibration_error, coverage_table, reliability
from models.training.scores import macro_f1

# Mistakes listed: the most confident ones are either wrong labels or what the model has yet to learn.
_SHOWN = 30


def quality(
    judged: Judged, abstain_threshold: float, group_thresholds: Mapping[str, float], chance: np.random.Generator
) -> dict[str, Any]:
    """Every score of one set that needs no more than the answers and the truth."""
    matrix = confusion_matrix(judged.truth, judged.predicted, labels=range(len(judged.labels)))
    hits, counts = matrix.diagonal().tolist(), matrix.sum(axis=1).tolist()
    groups = confusion_matrix(judged.group_truth, judged.group_predicted, labels=range(len(judged.groups)))
    is_sure = judged.is_sure(abstain_threshold, group_thresholds)
    return {
        "n": len(judged),
        "accuracy": share_of(judged.is_right),
        "macro_recall": macro_share(hits, counts, chance),
        "macro_f1": macro_f1(judged.predicted, judged.truth),
        "group_accuracy": share_of(judged.group_is_right),
        "group_macro_recall": macro_share(groups.diagonal().tolist(), groups.sum(axis=1).tolist(), chance),
        "ece": calibration_error(reliability(judged.confidence, judged.is_right)),
        "group_ece": calibration_error(reliability(judged.group_probabilities.max(axis=1), judged.group_is_right)),
        "abstain": {
            "threshold": abstain_threshold,
            "group_thresholds": dict(group_thresholds),
            "answered": share_of(is_sure),
            "accuracy": share_of(judged.is_right[is_sure]),
            "wrong_and_sure": share_of(is_sure & ~judged.is_right),
        },
        "labels": {
            name: _label_scores(hits[at], counts[at], int(matrix[:, at].sum())) for at, name in enumerate(judged.labels)
        },
        "groups": group_scores(judged),
        "confusion": {"labels": judged.labels, "truth_by_answer": matrix.tolist()},
        "group_confusion": {"groups": judged.groups, "truth_by_answer": groups.tolist()},
        "reliability": reliability(judged.confidence, judged.is_right),
        "coverage": coverage_table(judged.confidence, judged.is_right),
    }


def _label_scores(hits: int, truth: int, answered: int) -> dict[str, Any]:
    """Precision is out of the rows that got the label, recall out of those that have it; each says how many."""
    f1 = 2 * hits / (truth + answered) if truth + answered else None
    return {"recall": share(hits, truth), "precision": share(hits, answered), "f1": f1}


def group_scores(judged: Judged) -> dict[str, Any]:
    """Of each group that has rows: recall and precision, and how often its rows get their exact label."""
    found = {}
    for at, name in enumerate(judged.groups):
        own, answered = judged.group_truth == at, judged.group_predicted == at
        if own.any():
            found[name] = {
                "recall": share_of(answered[own]),
                "precision": share_of(own[answered]),
                "label_accuracy": share_of(judged.is_right[own]),
            }
    return found


def segment_scores(judged: Judged, labelled: Labelled) -> dict[str, Any]:
    """Accuracy and the groups' recalls of every segment of source, style and length."""
    return {
        kind: {name: brief(judged.only(chosen)) for name, chosen in segments.items()}
        for kind, segments in labelled.segments().items()
    }


def brief(judged: Judged) -> dict[str, Any]:
    return {
        "n": len(judged),
        "accuracy": share_of(judged.is_right),
        "group_accuracy": share_of(judged.group_is_right),
        "group_recall": {name: scores["recall"] for name, scores in group_scores(judged).items()},
    }


def mistakes(judged: Judged, labelled: Labelled) -> list[dict[str, Any]]:
    """The wrong answers that the model was surest of."""
    wrong = np.flatnonzero(~judged.is_right)
    surest = wrong[np.argsort(-judged.confidence[wrong], kind="stable")][:_SHOWN]
    return [
        {
            "query": labelled.rows[at].text,
            "label": judged.labels[judged.truth[at]],
            "answer": judged.labels[judged.predicted[at]],
            "confidence": float(judged.confidence[at]),
        }
        for at in surest.tolist()
    ]
