"""Arrivals are pure functions of a law, spans of a rate and a seed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.tools.arrivals import BURST_SHARE, LAWS, Law, Span, schedule, with_bursts


def counts_in(offsets_ns: np.ndarray, *edges_s: float) -> list[int]:
    """How many come between each edge and the next."""
    return np.histogram(offsets_ns / 1e9, edges_s)[0].tolist()


def test_poisson_gaps_are_exponential() -> None:
    gaps_s = np.diff(schedule("poisson", [Span(20, 1000)], seed=7)) / 1e9
    assert gaps_s.mean() == pytest.approx(1e-3, rel=0.03)
    assert gaps_s.std() == pytest.approx(1e-3, rel=0.03)
    for multiple in (0.1, 1, 3):  # P(gap > k means) = e^-k
        assert (gaps_s > multiple * 1e-3).mean() == pytest.approx(math.exp(-multiple), abs=0.015)


def test_poisson_counts_vary_as_much_as_their_mean() -> None:
    counts = [schedule("poisson", [Span(1, 50)], seed=seed).size for seed in range(2000)]
    assert np.mean(counts) == pytest.approx(50, rel=0.02)
    assert np.var(counts) == pytest.approx(50, rel=0.1)


def test_constant_arrivals_are_evenly_spaced() -> None:
    assert schedule("constant", [Span(1, 4)], seed=0).tolist() == [125_000_000, 375_000_000, 625_000_000, 875_000_000]


@pytest.mark.parametrize("law", LAWS)
def test_a_seed_names_one_schedule(law: Law) -> None:
    first, again, other = (schedule(law, [Span(2, 500)], seed=seed).tolist() for seed in (1, 1, 2))
    assert first == again
    assert (first == other) is (law == "constant")


@given(
    law=st.sampled_from(LAWS),
    spans=st.lists(st.builds(Span, st.floats(0.001, 3), st.floats(0.001, 2000)), min_size=1, max_size=4),
    seed=st.integers(0, 3),
)
def test_a_schedule_ascends_and_ends_with_its_spans(law: Law, spans: list[Span], seed: int) -> None:
    offsets_ns = schedule(law, spans, seed=seed)
    assert (np.diff(offsets_ns) >= 0).all()
    assert ((offsets_ns >= 0) & (offsets_ns <= sum(span.seconds for span in spans) * 1e9)).all()


@pytest.mark.parametrize("law", LAWS)
def test_each_span_has_its_own_rate(law: Law) -> None:
    found = counts_in(schedule(law, [Span(5, 1000), Span(5, 200), Span(5, 3000)], seed=1), 0, 5, 10, 15)
    assert found == pytest.approx([5000, 1000, 15000], rel=0.1)


def test_a_burst_is_the_last_fifth_of_a_cycle_at_its_factor_and_the_average_holds() -> None:
    offsets_ns = schedule("bursty", [Span(1.25, 40_000)], seed=1, burst_factor=2.5)  # one cycle
    calm, burst = counts_in(offsets_ns, 0, 1, 1.25)
    assert burst == pytest.approx(2.5 * 40_000 * 0.25, rel=0.03)
    assert calm == pytest.approx(0.625 * 40_000 * 1, rel=0.03)
    assert calm + burst == pytest.approx(50_000, rel=0.03)


@given(st.builds(Span, st.floats(0.01, 30), st.floats(1, 1000)), st.floats(1, 1 / BURST_SHARE))
def test_bursts_keep_a_spans_length_and_average(span: Span, factor: float) -> None:
    bursts = with_bursts([span], factor)
    assert sum(each.seconds for each in bursts) == pytest.approx(span.seconds)
    assert sum(each.seconds * each.rate for each in bursts) == pytest.approx(span.seconds * span.rate)
    assert all(each.rate >= -1e-9 for each in bursts)
    assert max(each.rate for each in bursts) == pytest.approx(factor * span.rate)


def test_at_the_largest_factor_nothing_comes_between_the_bursts() -> None:
    assert counts_in(schedule("bursty", [Span(1.25, 1000)], seed=1, burst_factor=1 / BURST_SHARE), 0, 1, 1.25)[0] == 0
