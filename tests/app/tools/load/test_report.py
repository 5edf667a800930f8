"""What is said about a run, and when nothing may be said."""

from __future__ import annotations

import numpy as np
import pytest

from app.tools.arrivals import Span
from app.tools.load.outcomes import CLOSED, TIMEOUT, UNSENT
from app.tools.load.percentiles import distribution
from app.tools.load.report import lag, report, server_timing, summary
from tests.app.tools.load.recordings import recording


def test_percentiles_are_true_to_three_digits() -> None:
    found = distribution(np.arange(1, 10_001) * 0.1)  # 0.1 … 1,000 ms
    for name, expected in {"p50": 500, "p90": 900, "p99": 990, "p99_9": 999, "max": 1000}.items():
        assert found[name] == pytest.approx(expected, rel=1e-3)
    assert found["count"] == 10_000


def test_nothing_has_no_percentiles() -> None:
    assert distribution(np.array([])) == {"p50": None, "p90": None, "p99": None, "p99_9": None, "max": None, "count": 0}


def test_stages_are_read_from_server_timing() -> None:
    found = server_timing([b"tokenize;dur=0.02, cache;desc=hit, total;dur=2", b"total;dur=4.0"])
    assert {stage: timing["count"] for stage, timing in found.items()} == {"tokenize": 1, "total": 2}
    assert found["tokenize"]["max"] == 0.02


@pytest.mark.parametrize(("late", "is_void"), [(0, False), (1, False), (2, True), (1000, True)])
def test_a_run_is_void_when_more_than_one_send_in_a_thousand_is_late(late: int, is_void: bool) -> None:
    """F15."""
    lag_ns = np.full(1000, 1_000_000)  # exactly a millisecond is not late
    lag_ns[:late] += 1
    found = lag(lag_ns)
    assert found["void"] is is_void
    assert found["late_share"] == late / 1000
    assert "0.1%" in found["rule"]


def test_each_request_is_counted_by_what_became_of_it() -> None:
    found = report(recording([1] * 6, [200, 200, 429, TIMEOUT, CLOSED, UNSENT]), None)
    assert found["statuses"] == {"200": 2, "429": 1}
    assert found["errors"] == {"timeout": 1, "unsent": 1, "closed": 1}
    assert (found["scheduled"], found["sent"], found["completed"]) == (6, 5, 3)
    assert "slo" not in found


def test_a_request_given_up_counts_with_the_time_it_waited() -> None:
    found = report(recording([1.0] * 9 + [1000.0], [200] * 9 + [TIMEOUT]), None)
    assert found["latency_ms"]["count"] == 10
    assert found["latency_ms"]["max"] == pytest.approx(1000, rel=1e-3)
    assert found["latency_ms_by_status"]["200"]["max"] == pytest.approx(1, rel=1e-3)


def test_refusals_do_not_count_as_latencies() -> None:
    found = report(recording([1, 50], [429, 200]), None)
    assert found["latency_ms"]["count"] == 1
    assert found["latency_ms_by_status"]["429"]["max"] == pytest.approx(1, rel=1e-3)


def test_answers_are_told_apart_by_their_source() -> None:
    found = report(recording([1, 1, 9, 0.1], [200, 200, 200, 429], sources=["cache", "cache", "model", "cache"]), None)
    assert found["sources"] == {"cache": 3, "model": 1}
    assert {name: each["count"] for name, each in found["latency_ms_by_source"].items()} == {"cache": 2, "model": 1}
    assert found["latency_ms_by_source"]["cache"]["p50"] == pytest.approx(1, rel=1e-3)
    assert "cache" in summary(found)


def test_latency_counts_from_the_intended_send_and_the_closed_loops_is_given_beside_it() -> None:
    """F15."""
    found = report(recording([10, 10], waited_ms=[0, 8]), None)
    assert found["latency_ms"]["p50"] == pytest.approx(10, rel=1e-3)
    assert found["latency_from_send_ms"]["p50"] == pytest.approx(2, rel=1e-3)
    assert found["latency_from_send_ms"]["max"] == pytest.approx(10, rel=1e-3)


@pytest.mark.parametrize(("failures", "is_met"), [(0, True), (1, True), (2, False)])
def test_one_failure_in_a_hundred_still_meets_a_p99_and_two_do_not(failures: int, is_met: bool) -> None:
    run = recording([5.0] * 100, [200] * (100 - failures) + [503] * failures)
    assert report(run, slo_p99_ms=5)["slo"]["met"] is is_met


def test_goodput_is_what_was_answered_in_time_a_second_of_the_schedule() -> None:
    found = report(recording([5.0] * 50 + [500.0] * 50), slo_p99_ms=10)  # within 0.1 s, the last ended after 0.6 s
    assert found["slo"]["within_share"] == 0.5
    assert found["slo"]["goodput"] == 500
    assert found["offered_rate"] == 1000
    assert found["achieved_rate"] == pytest.approx(100 / 0.599, rel=1e-3)


def test_a_void_run_proves_no_slo() -> None:
    found = report(recording([1.0] * 100, lag_ms=[0] * 99 + [2]), slo_p99_ms=10)
    assert found["lag"]["void"]
    assert found["slo"]["within_share"] == 1
    assert not found["slo"]["met"]
    assert "VOID" in summary(found)
    assert "SLO not judged" in summary(found)


def test_the_generators_own_cpu_is_given_a_request_and_as_a_share_of_a_core() -> None:
    found = report(recording([100.0] * 100, cpu_s=0.05), None)  # over 199 ms
    assert found["generator_cpu_us_per_request"] == 500
    assert found["generator_cpu_share"] == pytest.approx(0.05 / 0.199, abs=1e-3)


def test_each_step_is_reported_for_itself() -> None:
    run = recording([1.0] * 100 + [20.0] * 200, steps=[Span(0.1, 1000), Span(0.2, 1000)])
    first, second = report(run, slo_p99_ms=10)["steps"]
    assert (first["scheduled"], second["scheduled"]) == (100, 200)
    assert first["latency_ms"]["p99"] == pytest.approx(1, rel=1e-3)
    assert second["latency_ms"]["p50"] == pytest.approx(20, rel=1e-3)
    assert (first["slo"]["met"], second["slo"]["met"]) == (True, False)
    assert (first["slo"]["goodput"], second["slo"]["goodput"]) == (1000, 0)


def test_a_step_without_requests_is_no_error() -> None:
    run = recording([1.0] * 100, steps=[Span(0.1, 1000), Span(5, 0.001)])
    empty = report(run, slo_p99_ms=10)["steps"][1]
    assert empty["scheduled"] == 0
    assert empty["latency_ms"]["p99"] is None
    assert empty["slo"]["within_share"] is None
