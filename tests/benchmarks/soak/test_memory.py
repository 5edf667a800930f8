"""The slope of memory."""

from __future__ import annotations

import pytest

from benchmarks.soak.memory import Sample, slope_mb_per_min


def samples(epoch: int, level: float, slope: float, minutes: range) -> list[Sample]:
    return [Sample(minute, level + slope * minute, epoch) for minute in minutes]


@pytest.mark.parametrize("slope", [0.0, 0.5, -2.0])
def test_a_straight_line_has_its_slope(slope: float) -> None:
    assert slope_mb_per_min(samples(0, 200, slope, range(10))) == pytest.approx(slope)


def test_a_new_workers_level_is_no_growth() -> None:
    found = [*samples(0, 200, 0, range(5)), *samples(1, 260, 0, range(5, 10)), *samples(2, 230, 0, range(10, 12))]
    assert slope_mb_per_min(found) == pytest.approx(0)


def test_growth_is_not_hidden_by_the_fresh_workers_that_start_low_again() -> None:
    assert slope_mb_per_min([*samples(0, 200, 2, range(5)), *samples(1, 190, 2, range(5, 10))]) == pytest.approx(2)


@pytest.mark.parametrize("found", [[], samples(0, 200, 1, range(1)), [Sample(0, 1, 0), Sample(1, 9, 1)]])
def test_epochs_of_one_sample_have_no_slope(found: list[Sample]) -> None:
    assert slope_mb_per_min(found) is None
