"""Calibration and coverage, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from models.evaluation.reliability import calibration_error, coverage_curve, coverage_table, reliability
from models.training.scores import expected_calibration_error

CONFIDENCE = np.array([0.9, 0.8, 0.8, 0.5])
IS_RIGHT = np.array([True, True, False, False])


def test_bins_hold_confidence_beside_accuracy_and_empty_ones_are_left_out() -> None:
    low, high = reliability(CONFIDENCE, IS_RIGHT, bins=4)
    assert (low["from"], low["to"], low["n"], low["share"]) == (0.5, 0.75, 1, 0.25)
    assert (low["confidence"], low["accuracy"]) == (0.5, 0.0)
    assert high["confidence"] == pytest.approx(2.5 / 3)
    assert high["accuracy"] == pytest.approx(2 / 3)
    assert calibration_error([low, high]) == pytest.approx(0.25 * 0.5 + 0.75 * 0.5 / 3)


def test_full_confidence_belongs_to_the_last_bin() -> None:
    (only,) = reliability(np.array([1.0]), np.array([True]))
    assert (only["to"], calibration_error([only])) == (1.0, 0.0)


def test_it_is_the_calibration_error_that_training_reports() -> None:
    numbers = np.random.default_rng(5)
    probabilities = numbers.dirichlet([1, 1, 1], 500)
    truth = numbers.integers(0, 3, 500)
    bins = reliability(probabilities.max(axis=1), probabilities.argmax(axis=1) == truth)
    assert calibration_error(bins) == pytest.approx(expected_calibration_error(probabilities, truth))


def test_a_weight_of_two_is_the_row_twice() -> None:
    weighted = reliability(CONFIDENCE, IS_RIGHT, np.array([1.0, 1, 1, 2]))
    twice = reliability(CONFIDENCE[[0, 1, 2, 3, 3]], IS_RIGHT[[0, 1, 2, 3, 3]])
    assert calibration_error(weighted) == pytest.approx(calibration_error(twice))


def test_rows_of_one_confidence_are_covered_together() -> None:
    thresholds, coverage, accuracy = coverage_curve(CONFIDENCE, IS_RIGHT)
    assert thresholds.tolist() == [0.9, 0.8, 0.5]
    assert coverage.tolist() == [0.25, 0.75, 1.0]
    assert accuracy.tolist() == pytest.approx([1.0, 2 / 3, 0.5])


def test_the_table_covers_at_least_what_it_says() -> None:
    table = coverage_table(CONFIDENCE, IS_RIGHT)
    assert len(table) == 11
    assert table[0] == {"threshold": 0.5, "coverage": 1.0, "accuracy": 0.5}
    assert table[-1]["coverage"] == 0.75  # 50 % would split two rows of one confidence
