from __future__ import annotations

import numpy as np
import pytest

from app.tools.simulation.workload import Traffic
from app.tools.traces import Trace
from tests.app.tools.simulation.scenarios import PRODUCTS, Alternately

TRACE = Trace(np.array([0, 1, 2, 10]) * 1_000_000_000, None)


def traffic(trace: Trace | None = None, *, requests: int | None = None, seed: int = 0) -> Traffic:
    return Traffic("poisson", trace, PRODUCTS, requests, seed)


def test_arrivals_come_at_the_rate() -> None:
    workload = traffic(requests=10_000).workload(400)
    assert workload.rate == 400
    assert len(workload.at_s) == len(workload.tokens) == pytest.approx(10_000, rel=0.05)
    assert workload.duration_s == pytest.approx(25, rel=0.01)
    assert list(workload.at_s) == sorted(workload.at_s)


def test_a_seed_names_one_workload() -> None:
    one, same, other = (traffic(requests=200, seed=seed).workload(100) for seed in (1, 1, 2))
    assert one == same
    assert one != other


def test_lengths_are_drawn_for_each_arrival() -> None:
    workload = Traffic("constant", None, Alternately(5, 9), 4, 0).workload(10)
    assert workload.tokens == [5, 9, 5, 9]


@pytest.mark.parametrize(("rate", "at_s"), [(0.4, [0, 1, 2, 10]), (0.8, [0, 0.5, 1, 5]), (0.2, [0, 2, 4, 20])])
def test_a_trace_is_played_faster_or_slower_and_keeps_its_shape(rate: float, at_s: list[float]) -> None:
    workload = traffic(TRACE).workload(rate)
    assert workload.at_s == pytest.approx(at_s)
    assert workload.rate == rate


def test_a_trace_has_a_rate_of_its_own_and_a_law_has_none() -> None:
    assert traffic(TRACE).own_rate == 0.4
    assert traffic(TRACE, requests=3).own_rate == 1.5
    assert traffic().own_rate is None


def test_of_a_trace_the_first_queries_are_played() -> None:
    assert traffic(TRACE, requests=3).workload(1.5).at_s == [0, 1, 2]


@pytest.mark.parametrize("offsets", [[], [0], [0, 0]])
def test_a_trace_in_which_no_time_passes_is_refused(offsets: list[int]) -> None:
    with pytest.raises(ValueError, match="no time passes"):
        traffic(Trace(np.array(offsets, np.int64), None))
