"""Recordings made up for tests of what is said about them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from app.tools.arrivals import Span
from app.tools.load.outcomes import Recording

START_NS = 5_000_000_000


def recording(
    latencies_ms: Sequence[float],
    statuses: Sequence[int] | None = None,
    *,
    sources: Sequence[str] | None = None,
    lag_ms: Sequence[float] | None = None,
    waited_ms: Sequence[float] | None = None,
    steps: Sequence[Span] | None = None,
    server_timings: Sequence[bytes] = (),
    cpu_s: float = 0.0,
) -> Recording:
    """One request a millisecond; all are answered 200, on time and without a source where nothing else is said."""
    count = len(latencies_ms)
    names = ["", *dict.fromkeys(sources or ())]
    intended_ns = START_NS + np.arange(count) * 1_000_000
    return Recording(
        steps=steps or [Span(count / 1000, 1000)],
        start_ns=START_NS,
        intended_ns=intended_ns,
        lag_ns=_ns(lag_ms or [0] * count),
        sent_ns=intended_ns + _ns(waited_ms or [0] * count),
        ended_ns=intended_ns + _ns(latencies_ms),
        status=np.array(statuses or [200] * count, np.int16),
        source=np.array([names.index(name) for name in sources or [""] * count], np.int8),
        source_names=names,
        server_timings=list(server_timings),
        waited_for_connection=0,
        cpu_s=cpu_s,
        is_realtime=False,
    )


def _ns(milliseconds: Sequence[float]) -> np.ndarray:
    return (np.array(milliseconds) * 1e6).astype(np.int64)
