"""A run before it starts: what leaves when. Nothing the server does can change it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.tools.arrivals import NS_PER_S, Law, Span, schedule
from app.tools.traces import Trace

MAX_DURATION_S = 3600
MAX_REQUESTS = 5_000_000  # some 60 bytes each are held until the end


@dataclass(frozen=True, slots=True)
class Plan:
    """When each request is meant to leave, first those of the warm-up, whose outcomes don't count."""

    offsets_ns: NDArray[np.int64]  # from the start of the warm-up, ascending
    warmup_s: float
    steps: Sequence[Span]  # the average rates of the recorded part, one after the other

    def __len__(self) -> int:
        return self.offsets_ns.size

    @property
    def first_recorded(self) -> int:
        """The number of the first request that counts."""
        return int(np.searchsorted(self.offsets_ns, round(self.warmup_s * NS_PER_S)))


def plan_steps(law: Law, steps: Sequence[Span], *, warmup_s: float, seed: int, burst_factor: float) -> Plan:
    """Raises ``ValueError`` for more than this generator holds, and for no request at all."""
    _check(sum(step.seconds for step in steps), sum(step.seconds * step.rate for step in steps), warmup_s)
    recorded_ns = schedule(law, steps, seed=seed, burst_factor=burst_factor)
    return _with_warmup(recorded_ns, steps, warmup_s, seed)


def plan_trace(trace: Trace, *, warmup_s: float, seed: int) -> Plan:
    """The trace as it came, after a warm-up at its average rate. Raises ``ValueError`` as ``plan_steps`` does."""
    count = trace.offsets_ns.size
    # A trace of one moment only has no length, and then counts as a second.
    seconds = float(trace.offsets_ns[-1]) / NS_PER_S or 1.0
    _check(seconds, count, warmup_s)
    return _with_warmup(trace.offsets_ns, [Span(seconds, count / seconds)], warmup_s, seed)


def _check(seconds: float, count: float, warmup_s: float) -> None:
    if seconds > MAX_DURATION_S:
        raise ValueError(f"{seconds:,.0f} s are more than {MAX_DURATION_S:,}")
    count *= 1 + warmup_s / seconds
    if count > MAX_REQUESTS:
        raise ValueError(f"{count:,.0f} requests are more than {MAX_REQUESTS:,}")


def _with_warmup(recorded_ns: NDArray[np.int64], steps: Sequence[Span], warmup_s: float, seed: int) -> Plan:
    if not recorded_ns.size:
        raise ValueError("that is no request at all: the rate is too low for the duration")
    warmup_ns = schedule("poisson", [Span(warmup_s, steps[0].rate)], seed=seed)
    offsets_ns = np.concatenate([warmup_ns, recorded_ns + round(warmup_s * NS_PER_S)])
    return Plan(offsets_ns, warmup_s, steps)
