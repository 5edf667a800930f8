"""prometheus_client's metrics for a request path: raised by one thread, in shared memory, without a lock.

The library raises a value of several processes under a lock, asks for the process id and packs a timestamp; a counter
checks its labels each time, and a histogram tries one edge after the other. For the twenty values of a request that
takes as long as all the rest of it. Files, their format and everything that is read stay the library's own.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

import prometheus_client
import prometheus_client.values


class LeanCounter(prometheus_client.Counter):
    """Raised without looking whether the labels are complete or the amount is positive."""

    def inc(self, amount: float = 1, exemplar: dict[str, str] | None = None) -> None:
        self._value.inc(amount)


class LeanHistogram(prometheus_client.Histogram):
    """Observes without looking whether the labels are complete, and finds the bucket by bisection."""

    def observe(self, amount: float, exemplar: dict[str, str] | None = None) -> None:
        self._sum.inc(amount)
        self._buckets[bisect_left(self._upper_bounds, amount)].inc(1)


def write_shared(index: int) -> None:
    """Let metrics made from now on write files of this index. All of them are raised on one thread."""
    base: Any = prometheus_client.values.MultiProcessValue(lambda: index)  # type: ignore[no-untyped-call]

    class SharedValue(base):  # type: ignore[misc]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            start = self._file._positions[self._key]
            # A file that grows is mapped anew; this mapping goes on to show the same bytes.
            self._cell = memoryview(self._file._m)[start : start + 8].cast("d")

        def inc(self, amount: float) -> None:
            self._cell[0] += amount

        def get(self) -> float:
            value: float = self._cell[0]
            return value

    prometheus_client.values.ValueClass = SharedValue
