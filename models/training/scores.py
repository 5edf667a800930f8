"""How good a set of answers is: accuracy, recall, F1, calibration, over labels, groups and sources. numpy only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.integer[Any]]


def softmax(logits: Floats, temperature: float = 1.0) -> Floats:
    """[n, labels] → probabilities of the same shape."""
    scaled = logits.astype(np.float64) / temperature
    powers = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    result: Floats = powers / powers.sum(axis=1, keepdims=True)
    return result


def macro_f1(predicted: Ints, truth: Ints) -> float:
    """Mean F1 over the labels that occur in ``truth``."""
    scores = []
    for label in np.unique(truth):
        hits = np.sum((predicted == label) & (truth == label))
        scores.append(2 * hits / (np.sum(predicted == label) + np.sum(truth == label)))
    return float(np.mean(scores))


def recalls(predicted: Ints, truth: Ints) -> dict[int, float]:
    """Recall of each label that occurs in ``truth``."""
    return {int(label): float(np.mean(predicted[truth == label] == label)) for label in np.unique(truth)}


def expected_calibration_error(probabilities: Floats, truth: Ints, bins: int = 15) -> float:
    """ECE of Guo et al. (2017): mean gap between confidence and accuracy over equal-width bins, weighted by size."""
    confidence = probabilities.max(axis=1)
    correct = probabilities.argmax(axis=1) == truth
    places = np.minimum((confidence * bins).astype(int), bins - 1)
    gaps = [
        abs(float(confidence[places == place].mean() - correct[places == place].mean()))
        * float(np.mean(places == place))
        for place in np.unique(places)
    ]
    return float(sum(gaps))


def score(
    probabilities: Floats, truth: Ints, labels: Sequence[str], groups: Mapping[str, str], sources: Sequence[str]
) -> dict[str, Any]:
    """All scores of one split, rounded for a report.

    ``probabilities`` [n, labels], ``truth`` [n] indices into ``labels``, ``groups`` label → group, ``sources`` [n].
    A group's probability is the sum over its labels, as in serving; ``label_accuracy`` of a group is the share of its
    rows whose exact label came first.
    """
    names = list(dict.fromkeys(groups[label] for label in labels))
    membership = np.array([[groups[label] == name for name in names] for label in labels], dtype=np.float64)
    group_of = membership.argmax(axis=1)
    predicted = probabilities.argmax(axis=1)
    group_truth = group_of[truth]
    group_predicted = (probabilities @ membership).argmax(axis=1)
    group_recall = recalls(group_predicted, group_truth)
    label_recall = recalls(predicted, truth)
    source_names = np.array(sources)
    result: dict[str, Any] = _rounded(
        {
            "n": len(truth),
            "accuracy": float(np.mean(predicted == truth)),
            "macro_f1": macro_f1(predicted, truth),
            "macro_recall": float(np.mean(list(label_recall.values()))),
            "group_macro_recall": float(np.mean(list(group_recall.values()))),
            "ece": expected_calibration_error(probabilities, truth),
            "groups": {
                names[group]: {
                    "n": int(np.sum(group_truth == group)),
                    "recall": recall,
                    "label_accuracy": float(np.mean((predicted == truth)[group_truth == group])),
                }
                for group, recall in group_recall.items()
            },
            "labels": {
                labels[label]: {"n": int(np.sum(truth == label)), "recall": recall}
                for label, recall in label_recall.items()
            },
            "sources": {
                f"{source}/{names[group]}": {
                    "n": int(np.sum(chosen)),
                    "recall": float(np.mean(group_predicted[chosen] == group)),
                }
                for source in sorted(set(sources))
                for group in range(len(names))
                if np.any(chosen := (source_names == source) & (group_truth == group))
            },
        }
    )
    return result


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return round(value, 4) if isinstance(value, float) else value
