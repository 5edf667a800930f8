"""A plan says when each request leaves, within what the generator can hold."""

from __future__ import annotations

import numpy as np
import pytest

from app.tools.arrivals import Span
from app.tools.load.plan import MAX_DURATION_S, MAX_REQUESTS, Plan, plan_steps, plan_trace
from app.tools.traces import Trace


def steps(*spans: tuple[float, float], warmup_s: float = 0.0) -> Plan:
    return plan_steps("constant", [Span(*span) for span in spans], warmup_s=warmup_s, seed=0, burst_factor=2.5)


def trace(*offsets_s: float, warmup_s: float = 0.0) -> Plan:
    offsets_ns = (np.array(offsets_s) * 1e9).astype(np.int64)
    return plan_trace(Trace(offsets_ns, None), warmup_s=warmup_s, seed=0)


def test_without_a_warm_up_all_is_recorded() -> None:
    plan = steps((1, 4))
    assert plan.offsets_ns.tolist() == [125_000_000, 375_000_000, 625_000_000, 875_000_000]
    assert plan.first_recorded == 0


def test_the_warm_up_goes_before_at_the_first_rate() -> None:
    plan = steps((1, 100), (1, 5000), warmup_s=2)
    assert plan.first_recorded == pytest.approx(200, rel=0.3)
    assert plan.offsets_ns[plan.first_recorded] == 2_000_000_000 + 5_000_000
    assert len(plan) - plan.first_recorded == 5100


def test_a_trace_is_sent_as_it_came() -> None:
    plan = trace(0, 0.5, 0.5, 4)
    assert plan.offsets_ns.tolist() == [0, 500_000_000, 500_000_000, 4_000_000_000]
    assert plan.steps == [Span(4, 1)]


def test_the_warm_up_of_a_trace_is_at_its_average_rate() -> None:
    plan = trace(*np.linspace(0, 1, 1000), warmup_s=1)
    assert plan.first_recorded == pytest.approx(1000, rel=0.1)
    assert plan.offsets_ns[plan.first_recorded] == 1_000_000_000


def test_a_trace_of_one_moment_counts_as_a_second() -> None:
    assert trace(0, 0, 0).steps == [Span(1, 3)]


def test_more_than_can_be_held_is_refused_with_the_limit() -> None:
    with pytest.raises(ValueError, match=r"3,601 s are more than 3,600"):
        steps((MAX_DURATION_S + 1, 1))
    with pytest.raises(ValueError, match=r"3,700 s are more than 3,600"):
        trace(0, 3700)
    with pytest.raises(ValueError, match=r"6,000,000 requests are more than 5,000,000"):
        steps((10, MAX_REQUESTS / 10), warmup_s=2)


def test_no_request_at_all_is_refused() -> None:
    with pytest.raises(ValueError, match="no request at all"):
        steps((0.1, 1))
