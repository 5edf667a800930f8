"""What arrives: when, and how many tokens each query has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.tools.arrivals import NS_PER_S, Law, Span, schedule
from app.tools.simulation.lengths import Lengths
from app.tools.traces import Trace

DEFAULT_REQUESTS = 50_000


@dataclass(frozen=True, slots=True)
class Workload:
    """Arrivals ``at_s`` in seconds from the start, ascending, and the ``tokens`` of each.

    ``rate`` is how many a second they are on average.
    """

    rate: float
    at_s: Sequence[float]
    tokens: Sequence[int]

    @property
    def duration_s(self) -> float:
        return self.at_s[-1]


@dataclass(frozen=True, slots=True)
class Traffic:
    """What makes workloads of any rate: a law of arrivals or a recorded ``trace``, and lengths.

    ``requests`` is how many there are, a trace's first ones; all of it, or ``DEFAULT_REQUESTS``, where it is ``None``.
    Raises ``ValueError`` for a trace that has no rate.
    """

    law: Law
    trace: Trace | None
    lengths: Lengths
    requests: int | None
    seed: int

    def __post_init__(self) -> None:
        if self.trace is not None and not self.trace.offsets_ns[: self.requests].any():
            raise ValueError("no time passes between the arrivals of the trace")

    @property
    def own_rate(self) -> float | None:
        """The trace's, a second."""
        if self.trace is None:
            return None
        offsets_ns = self.trace.offsets_ns[: self.requests]
        return len(offsets_ns) / float(offsets_ns[-1] / NS_PER_S)

    def workload(self, rate: float) -> Workload:
        """At ``rate``. A trace is played faster or slower, so that its bursts keep their shape."""
        if self.trace is not None and self.own_rate is not None:
            offsets_s = self.trace.offsets_ns[: self.requests] / NS_PER_S * (self.own_rate / rate)
        else:
            span = Span((self.requests or DEFAULT_REQUESTS) / rate, rate)
            offsets_s = schedule(self.law, [span], seed=self.seed) / NS_PER_S
        tokens = self.lengths.draw(len(offsets_s), np.random.default_rng(self.seed))
        return Workload(rate, offsets_s.tolist(), tokens.tolist())
