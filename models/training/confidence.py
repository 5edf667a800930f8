"""What is set after training, on rows that it hasn't seen: the temperature, and the confidences to abstain under."""

from __future__ import annotations

import numpy as np

from models.training.scores import Floats, Ints, softmax

# What wrongly taking 1 % of the home group's queries costs, in per cent of another group's left at home.
REDIRECT_COST = 30.0

_GOLDEN = (5**0.5 - 1) / 2


def fit_temperature(logits: Floats, truth: Ints, low: float = 0.05, high: float = 10.0) -> float:
    """The temperature with the least negative log-likelihood (Guo et al., 2017).

    One number can't change which label comes first. The likelihood has a single minimum in 1/temperature, so a
    golden-section search over the logarithm finds it; 40 steps leave an error under 1e-6.

    As in Platt (1999) the target of a right answer is (n + 1)/(n + 2) and not 1: a few dozen rows without a mistake
    don't prove that there are none.
    """
    rows, labels = logits.shape
    target = np.full(logits.shape, 1 / (rows + 2) / (labels - 1))
    target[np.arange(rows), truth] = (rows + 1) / (rows + 2)

    def loss(log_temperature: float) -> float:
        probabilities = softmax(logits, float(np.exp(log_temperature)))
        return float(-np.mean(np.sum(target * np.log(probabilities + 1e-12), axis=1)))

    start, end = float(np.log(low)), float(np.log(high))
    for _ in range(40):
        left, right = end - _GOLDEN * (end - start), start + _GOLDEN * (end - start)
        if loss(left) < loss(right):
            end = right
        else:
            start = left
    return float(np.exp((start + end) / 2))


def fit_abstain_threshold(probabilities: Floats, truth: Ints, lost: float = 0.02) -> float:
    """The confidence that all but ``lost`` of the right answers reach; 0 when no answer is right.

    A quantile of the right answers, not the point that best parts right from wrong: with few wrong answers on
    validation that point jumps between trainings (0.97 once), and would withhold many good answers on unseen shops.
    A fiftieth lost on validation was a twentieth on held-out sources.
    """
    correct = probabilities.argmax(axis=1) == truth
    return float(np.quantile(probabilities.max(axis=1)[correct], lost)) if correct.any() else 0.0


def fit_group_thresholds(
    group_probabilities: Floats, group_truth: Ints, *, home: int, redirect_cost: float
) -> dict[int, float]:
    """Group → the confidence to ask of it, for every group but ``home``, whose page is shown in all other cases.

    The threshold that pays best: the group's own rows that reach it, less ``redirect_cost`` times the rows of ``home``
    that do, both as shares. That is the cost-sensitive decision of Elkan (2001) with both errors priced. Thresholds lie
    halfway between two confidences; one over all of them, when no redirect pays, is the last resort.

    ``group_probabilities`` [n, groups], ``group_truth`` [n]; every group has rows.
    """
    predicted, confidence = group_probabilities.argmax(axis=1), group_probabilities.max(axis=1)
    thresholds: dict[int, float] = {}
    for group in range(group_probabilities.shape[1]):
        kept = np.where(predicted == group, confidence, -1.0)
        own, taken = kept[group_truth == group], kept[group_truth == home]
        if group == home:
            continue
        reached = np.unique(kept[kept >= 0])
        never = min(1.0, float(confidence.max()) + 1e-4)
        candidates = np.concatenate([[0.0], (reached[1:] + reached[:-1]) / 2, [never]])
        worth = [np.mean(own >= each) - redirect_cost * np.mean(taken >= each) for each in candidates]
        thresholds[group] = float(candidates[int(np.argmax(worth))])
    return thresholds
