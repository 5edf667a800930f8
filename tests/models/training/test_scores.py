"""Scores and what is fitted on them, on cases small enough to do by hand."""

from __future__ import annotations

import numpy as np
import pytest

from models.training.confidence import fit_abstain_threshold, fit_group_thresholds, fit_temperature
from models.training.scores import expected_calibration_error, macro_f1, recalls, score, softmax

LABELS = ["product", "status", "refund"]
GROUPS = {"product": "product", "status": "help", "refund": "help"}


def test_macro_f1_and_recalls_count_labels_alike() -> None:
    truth, predicted = np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1])
    assert macro_f1(predicted, truth) == pytest.approx((0.8 + 2 / 3) / 2)
    assert recalls(predicted, truth) == {0: pytest.approx(2 / 3), 1: 1.0}


def test_a_label_that_never_occurs_does_not_count() -> None:
    assert macro_f1(np.array([0, 2]), np.array([0, 0])) == pytest.approx(2 / 3)


def test_calibration_error_is_the_gap_between_confidence_and_accuracy() -> None:
    probabilities = np.array([[0.9, 0.1]] * 10)
    assert expected_calibration_error(probabilities, np.array([0] * 9 + [1])) == pytest.approx(0.0)
    assert expected_calibration_error(probabilities, np.array([0] * 4 + [1] * 6)) == pytest.approx(0.5)
    assert expected_calibration_error(np.array([[1.0, 0.0]]), np.array([0])) == pytest.approx(0.0)


def test_a_group_is_judged_by_the_sum_of_its_labels() -> None:
    probabilities = np.array([[0.4, 0.3, 0.3], [0.6, 0.2, 0.2]])
    scores = score(probabilities, np.array([2, 0]), LABELS, GROUPS, ["x", "y"])
    assert scores["accuracy"] == 0.5
    assert scores["group_macro_recall"] == 1.0
    assert scores["groups"]["help"] == {"n": 1, "recall": 1.0, "label_accuracy": 0.0}
    assert scores["sources"] == {"x/help": {"n": 1, "recall": 1.0}, "y/product": {"n": 1, "recall": 1.0}}
    assert scores["labels"] == {"product": {"n": 1, "recall": 1.0}, "refund": {"n": 1, "recall": 0.0}}


def test_the_temperature_undoes_a_stretch_of_the_logits() -> None:
    chance = np.random.default_rng(1)
    logits = chance.normal(size=(4000, 3)) * 2
    truth = np.array([chance.choice(3, p=row) for row in softmax(logits)])
    assert fit_temperature(logits, truth) == pytest.approx(1.0, abs=0.07)
    assert fit_temperature(logits * 3, truth) == pytest.approx(3.0, abs=0.2)


def test_a_few_rows_without_a_mistake_do_not_make_it_certain() -> None:
    logits = np.array([[4.0, 0.0, 0.0]] * 36)
    confidence = softmax(logits, fit_temperature(logits, np.zeros(36, dtype=int)))[:, 0]
    assert confidence == pytest.approx(37 / 38, abs=0.001)


def test_softmax_survives_large_logits() -> None:
    assert softmax(np.array([[1000.0, 0.0]])).tolist() == [[1.0, 0.0]]


def test_the_abstain_threshold_keeps_all_but_a_fiftieth_of_the_right_answers() -> None:
    confidence = np.linspace(0.5, 0.99, 100)
    probabilities = np.stack([confidence, 1 - confidence], axis=1)
    threshold = fit_abstain_threshold(probabilities, np.zeros(100, dtype=int))
    assert np.mean(confidence >= threshold) == pytest.approx(0.98)
    assert fit_abstain_threshold(probabilities, np.ones(100, dtype=int)) == 0.0


class TestGroupThresholds:
    """Four rows of group 1, its answers 0.9, 0.8, 0.7 and 0.6 sure; of ten rows of home one is taken, at 0.75."""

    ANSWERS = np.array([[0.1, 0.9], [0.2, 0.8], [0.3, 0.7], [0.4, 0.6], [0.25, 0.75], *[[0.9, 0.1]] * 9])
    TRUTH = np.array([1, 1, 1, 1, *[0] * 10])

    def fit(self, redirect_cost: float) -> dict[int, float]:
        return fit_group_thresholds(self.ANSWERS, self.TRUTH, home=0, redirect_cost=redirect_cost)

    def test_a_dear_redirect_is_avoided_and_a_cheap_one_is_not(self) -> None:
        # Over 0.75 half of the group is left, and none of home is taken.
        assert self.fit(10) == {1: pytest.approx(0.775)}
        assert self.fit(1) == {1: 0.0}

    def test_home_has_no_threshold(self) -> None:
        assert list(self.fit(1)) == [1]

    def test_where_no_redirect_pays_none_is_made(self) -> None:
        answers = np.array([[0.4, 0.6], [0.35, 0.65], [0.1, 0.9], *[[0.9, 0.1]] * 8])  # home's row is the surest
        threshold = fit_group_thresholds(answers, np.array([1, 1, *[0] * 9]), home=0, redirect_cost=30)[1]
        assert 0.9 < threshold <= 1
