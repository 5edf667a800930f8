"""What is set after training, on the validation split: the temperature and the confidence to abstain under."""

from __future__ import annotations

import numpy as np

from models.training.scores import Floats, Ints, softmax

_GOLDEN = (5**0.5 - 1) / 2


def fit_temperature(logits: Floats, truth: Ints, low: float = 0.05, high: float = 10.0) -> float:
    """The temperature with the least negative log-likelihood (Guo et al., 2017).

    One number can't change which label comes first. The likelihood has a single minimum in 1/temperature, so a
    golden-section search over the logarithm finds it; 40 steps leave an error under 1e-6.
    """

    def loss(log_temperature: float) -> float:
        probabilities = softmax(logits, float(np.exp(log_temperature)))
        return float(-np.mean(np.log(probabilities[np.arange(len(truth)), truth] + 1e-12)))

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
