"""A student learns its teacher's answers, from texts without labels."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("scipy", reason="teaching needs scipy")

from app.student import Scorer, features
from models.compiling.student import design_matrix, quantise, teach
from models.training.scores import softmax

BUCKETS = 1 << 12
TEXTS = ["red shoes", "blue shoes", "buy shoes", "a sad film", "the film", "a film by her", "where is it", "shoes film"]
ANSWERS = np.array([[0.9, 0.1]] * 3 + [[0.1, 0.9]] * 3 + [[0.5, 0.5]] * 2)


def answer(weights: list[float]) -> np.ndarray:
    student = teach(TEXTS, ANSWERS, np.array(weights), buckets=BUCKETS)
    return np.concatenate([softmax(Scorer(student).logits(text)) for text in TEXTS])


def test_it_answers_what_it_was_taught_as_its_teacher_does() -> None:
    assert answer([1.0] * len(TEXTS)) == pytest.approx(ANSWERS, abs=0.03)


def test_a_text_of_no_weight_teaches_nothing() -> None:
    turned = ANSWERS.copy()
    turned[-1] = [1.0, 0.0]
    weights = np.array([1.0] * (len(TEXTS) - 1) + [0.0])
    taught, other = (teach(TEXTS, answers, weights, buckets=BUCKETS) for answers in (ANSWERS, turned))
    assert np.array_equal(taught.weights, other.weights)


def test_at_its_end_what_the_lessons_pull_is_what_the_penalty_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gradient of cross-entropy and penalty together is zero there, but for the rounding to int8."""
    monkeypatch.setattr("models.compiling.student.L2", 0.01)
    student = teach(TEXTS, ANSWERS, np.ones(len(TEXTS)), buckets=BUCKETS)
    weights, x = student.weights * student.scale, design_matrix(TEXTS, BUCKETS)
    pull = x.T @ ((softmax(x @ weights + student.bias) - ANSWERS) / len(TEXTS))
    assert np.abs(weights).max() > 0.1
    assert pull == pytest.approx(-0.01 * weights, abs=5e-4)


def test_the_same_lessons_make_the_same_student() -> None:
    one, other = (teach(TEXTS, ANSWERS, np.ones(len(TEXTS)), buckets=BUCKETS) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_teaching_sees_the_features_that_serving_sees() -> None:
    matrix = design_matrix(["where is my parcel", "a"], BUCKETS).toarray()
    for row, text in zip(matrix, ["where is my parcel", "a"], strict=True):
        expected = np.zeros(BUCKETS)
        np.add.at(expected, *features(text, BUCKETS))
        assert row == pytest.approx(expected)


def test_a_weight_moves_by_half_a_step_at_most_when_it_becomes_int8() -> None:
    matrix = np.random.default_rng(5).normal(size=(64, 3)) * [1.0, 5.0, 0.1]
    student = quantise(matrix, np.array([0.5, -0.5, 0.0]))
    assert student.weights.dtype == np.int8
    assert np.abs(student.weights * student.scale - matrix).max(axis=0) == pytest.approx(student.scale / 2, rel=0.2)
    assert np.abs(student.weights).max(axis=0).tolist() == [127, 127, 127]


def test_a_label_that_nothing_speaks_for_is_no_division_by_zero() -> None:
    student = quantise(np.zeros((4, 2)), np.zeros(2))
    assert np.isfinite(Scorer(student).logits("lamp")).all()
