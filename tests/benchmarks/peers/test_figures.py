"""The figures of a comparison: what counts as held, what is left out, and who the ratio flatters."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.peers.figures import Figures, compare, highest_rate, is_hopeless, peak_goodput, summarise


def run(p99_ms: float | None, *, void: bool = False, failed: int = 0, good_share: float = 1.0) -> dict[str, Any]:
    """A run of 1,000 requests in 10 s as ``query-intent load`` reports it."""
    return {
        "latency_ms": {"p50": 1.0, "p90": 2.0, "p99": p99_ms, "p99_9": p99_ms},
        "slo": {"within_share": good_share, "goodput": 100 * good_share},
        "scheduled": 1000,
        "statuses": {"200": 1000 - failed, "429": failed} if failed else {"200": 1000},
        "errors": {},
        "generator_cpu_share": 0.1,
        "lag": {"void": void},
    }


def rate(p99_ms: float | None, **options: Any) -> Figures:
    return summarise([run(p99_ms, **options)])


def test_a_rate_has_the_median_of_its_rounds() -> None:
    figures = summarise([run(9.0), run(40.0), run(8.0)])
    assert figures["p99_ms"] == 9.0
    assert figures["p99_ms_of_each_round"] == [9.0, 40.0, 8.0]


def test_a_void_round_is_counted_and_left_out() -> None:
    figures = summarise([run(9.0), run(500.0, void=True), run(7.0)])
    assert (figures["p99_ms"], figures["void_rounds"]) == (8.0, 1)


def test_a_rate_whose_rounds_are_mostly_void_has_no_latency() -> None:
    assert summarise([run(9.0), run(9.0, void=True), run(9.0, void=True)])["p99_ms"] is None


def test_a_round_without_any_answer_is_worse_than_the_others() -> None:
    assert summarise([run(None), run(9.0), run(8.0)])["p99_ms"] == 9.0
    assert summarise([run(None), run(None), run(8.0)])["p99_ms"] is None


def test_what_failed_is_added_up_by_its_kind() -> None:
    figures = summarise([run(9.0, failed=2), run(9.0, failed=3)])
    assert (figures["not_200"], figures["errors"]) == (5, {"429": 5})


@pytest.mark.parametrize(
    ("rates", "held", "missed"),
    [
        ({50: rate(10.0), 100: rate(10.1)}, 50, 100),  # the objective itself is met
        ({50: rate(5.0), 100: rate(6.0)}, 100, None),
        ({50: rate(11.0), 100: rate(9.0)}, None, 50),  # luck at a higher rate doesn't count
        ({50: rate(5.0), 100: rate(5.0, failed=1)}, 100, None),
        ({50: rate(5.0), 100: rate(5.0, failed=2)}, 50, 100),  # a short tail by refusing
        ({50: rate(5.0), 100: rate(None)}, 50, 100),
        ({50: rate(5.0), 100: rate(5.0, void=True), 200: rate(90.0)}, 50, 200),  # not judged is neither
        ({50: rate(5.0), 100: rate(5.0, void=True), 200: rate(9.0)}, 200, None),
        ({50: rate(5.0), 100: rate(5.0, void=True)}, 50, None),
    ],
)
def test_the_highest_rate_is_the_last_before_the_first_miss(
    rates: dict[float, Figures], held: float | None, missed: float | None
) -> None:
    assert highest_rate(rates, 10) == {"held": held, "missed": missed}


def test_the_ratio_is_to_the_best_peer_and_its_lower_bound_to_what_that_one_missed() -> None:
    servers = {
        "ours": {50: rate(5.0), 600: rate(9.0), 1000: rate(30.0)},
        "weak": {50: rate(12.0)},
        "strong": {50: rate(5.0), 100: rate(9.0), 150: rate(12.0)},
    }
    found = compare(servers, "ours")["p99_within_10_ms"]
    assert (found["times_best_peer"], found["times_best_peer_at_least"]) == (6.0, 4.0)


def test_there_is_no_lower_bound_where_a_peer_held_everything() -> None:
    servers = {"ours": {50: rate(5.0), 100: rate(5.0)}, "strong": {50: rate(5.0)}, "weak": {50: rate(50.0)}}
    assert compare(servers, "ours")["p99_within_10_ms"]["times_best_peer_at_least"] is None


def test_there_is_no_ratio_where_we_held_nothing() -> None:
    servers = {"ours": {50: rate(50.0)}, "peer": {50: rate(5.0)}}
    assert compare(servers, "ours")["p99_within_10_ms"]["times_best_peer"] is None


def test_the_peak_of_goodput_may_lie_before_the_last_rate() -> None:
    assert peak_goodput({50: rate(5.0), 100: rate(90.0, good_share=0.4)}) == 100.0


def test_a_rate_is_hopeless_when_fewer_than_half_are_in_time() -> None:
    assert is_hopeless(run(900.0, good_share=0.49))
    assert not is_hopeless(run(900.0, good_share=0.5))
