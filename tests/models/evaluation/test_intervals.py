"""Intervals against published values, closed forms and counting by hand."""

from __future__ import annotations

import numpy as np
import pytest

from models.evaluation.intervals import macro_share, paired, paired_macro, share, share_of


def chance() -> np.random.Generator:
    return np.random.default_rng(3)


def rows(both: int, only_a: int, only_b: int, neither: int) -> tuple[np.ndarray, np.ndarray]:
    """Whether A and B are right on so many rows each."""
    a = np.repeat([True, True, False, False], [both, only_a, only_b, neither])
    b = np.repeat([True, False, True, False], [both, only_a, only_b, neither])
    return a, b


class TestShare:
    @pytest.mark.parametrize(
        ("hits", "n", "low", "high"),
        [(8, 10, 0.4902, 0.9433), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (1, 1, 0.2065, 1.0)],
    )
    def test_it_has_wilsons_interval(self, hits: int, n: int, low: float, high: float) -> None:
        found = share(hits, n)
        assert (found["n"], found["value"]) == (n, hits / n)
        assert (found["low"], found["high"]) == pytest.approx((low, high), abs=1e-4)

    def test_of_no_rows_it_says_nothing(self) -> None:
        assert share_of(np.array([], bool)) == {"n": 0, "value": None, "low": None, "high": None}


class TestMacroShare:
    def test_every_class_counts_alike_however_many_rows_it_has(self) -> None:
        found = macro_share([90, 1], [100, 2], chance())
        assert (found["n"], found["value"]) == (102, 0.7)

    def test_classes_without_rows_do_not_count(self) -> None:
        assert macro_share([1, 0], [1, 0], chance())["value"] == 1.0

    def test_its_interval_is_about_that_of_the_normal_distribution_where_rows_are_many(self) -> None:
        found = macro_share([900, 500], [1000, 1000], chance())
        margin = 1.96 * np.sqrt(0.9 * 0.1 / 1000 + 0.5 * 0.5 / 1000) / 2
        assert (found["low"], found["high"]) == pytest.approx((0.7 - margin, 0.7 + margin), abs=1e-3)


class TestPaired:
    def test_the_difference_counts_the_rows_that_only_one_gets_right(self) -> None:
        found = paired(*rows(6, 1, 3, 0), chance())
        assert (found["n"], found["a"], found["b"]) == (10, 0.7, 0.9)
        assert found["difference"] == pytest.approx(0.2)
        assert (found["only_a_is_right"], found["only_b_is_right"]) == (1, 3)

    def test_p_is_mcnemars_exact_one(self) -> None:
        # Three or more of four on one side, or one or fewer: 2 · (4 + 1) / 16.
        assert paired(*rows(6, 1, 3, 0), chance())["p"] == pytest.approx(0.625)
        assert paired(*rows(6, 0, 6, 0), chance())["p"] == pytest.approx(2 / 2**6)

    def test_equal_answers_differ_by_nothing(self) -> None:
        found = paired(*rows(5, 0, 0, 5), chance())
        assert (found["difference"], found["low"], found["high"], found["p"]) == (0, 0, 0, 1)

    def test_its_interval_is_about_that_of_the_normal_distribution_where_rows_are_many(self) -> None:
        found = paired(*rows(860, 10, 30, 100), chance())
        margin = 1.96 * np.sqrt((0.04 - 0.02**2) / 1000)
        assert (found["low"], found["high"]) == pytest.approx((0.02 - margin, 0.02 + margin), abs=1.5e-3)

    def test_the_same_seed_gives_the_same_interval(self) -> None:
        assert paired(*rows(50, 3, 5, 7), chance()) == paired(*rows(50, 3, 5, 7), chance())

    def test_of_no_rows_it_says_nothing(self) -> None:
        assert paired(np.array([], bool), np.array([], bool), chance())["difference"] is None


def test_a_macro_difference_counts_classes_alike() -> None:
    a, b = np.array([1, 1, 1, 1, 0, 0], bool), np.array([1, 1, 1, 0, 1, 1], bool)
    found = paired_macro(a, b, np.array([0, 0, 0, 0, 1, 1]), chance())
    assert (found["a"], found["b"], found["difference"]) == (0.5, 0.875, 0.375)
    assert found["low"] < 0.375 < found["high"]
