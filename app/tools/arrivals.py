"""When requests are meant to come: pure functions from a rate over time to moments.

A rate over time is a list of spans, each some seconds at one rate. A law spreads the requests over it: first over the
number of requests expected so far, then each of those numbers is looked up on the time axis. That is the time-rescaling
theorem: a Poisson process of rate 1, run on a clock that goes at the rate's speed, is a Poisson process of that rate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

NS_PER_S = 1_000_000_000

Law = Literal["poisson", "constant", "bursty"]
LAWS: tuple[Law, ...] = get_args(Law)

# The law of bursts: in the last fifth of each cycle the rate is BURST_FACTOR times the average, before it so much lower
# that the average holds. Bursts last about BURST_S: a cycle is stretched until a whole number of them fills the span.
# Fixed cycles, not random ones, so that runs of some seconds have the same average and can be compared.
BURST_SHARE = 0.2
BURST_FACTOR = 2.5
BURST_S = 0.25


class Span(NamedTuple):
    seconds: float
    rate: float  # requests a second


def schedule(law: Law, spans: Sequence[Span], *, seed: int, burst_factor: float = BURST_FACTOR) -> NDArray[np.int64]:
    """Offsets from the start in ns, ascending and below the spans' total; equal arguments give equal offsets."""
    if law == "bursty":
        spans = with_bursts(spans, burst_factor)
    expected = math.fsum(span.seconds * span.rate for span in spans)
    if law == "constant":
        counts = np.arange(math.floor(expected + 0.5)) + 0.5
    else:
        rng = np.random.default_rng(seed)
        # Given how many there are, the moments of a Poisson process are independent and uniform.
        counts = np.sort(rng.uniform(0, expected, rng.poisson(expected)))
    moments_s = np.interp(
        counts,
        np.cumsum([0.0, *(span.seconds * span.rate for span in spans)]),
        np.cumsum([0.0, *(span.seconds for span in spans)]),
    )
    offsets_ns: NDArray[np.int64] = (moments_s * NS_PER_S).astype(np.int64)
    return offsets_ns


def with_bursts(spans: Sequence[Span], factor: float = BURST_FACTOR) -> list[Span]:
    """The same averages with bursts of ``factor`` times the rate (1 to 1 / BURST_SHARE, where the calm is silent)."""
    calm = (1 - BURST_SHARE * factor) / (1 - BURST_SHARE)
    bursts: list[Span] = []
    for seconds, rate in spans:
        cycles = max(1, round(seconds * BURST_SHARE / BURST_S))
        cycle_s = seconds / cycles
        cycle = Span(cycle_s * (1 - BURST_SHARE), rate * calm), Span(cycle_s * BURST_SHARE, rate * factor)
        bursts += cycle * cycles
    return bursts
