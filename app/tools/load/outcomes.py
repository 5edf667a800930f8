"""What became of each request: written one by one during the run, read as columns after it."""

from __future__ import annotations

import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.tools.arrivals import NS_PER_S, Span

# Outcomes that are no HTTP status. Requests are pending until something ends them.
PENDING, TIMEOUT, UNSENT, CLOSED, RESET, MALFORMED = 0, -1, -2, -3, -4, -5
ERRORS = {
    TIMEOUT: "timeout",  # sent, and no complete reply within the time limit
    UNSENT: "unsent",  # no connection was free within the time limit
    CLOSED: "closed",  # the server closed the connection before the reply was complete
    RESET: "reset",  # the connection broke before the reply was complete
    MALFORMED: "malformed",  # what came back was no HTTP
}
MAX_SERVER_TIMINGS = 250_000  # a larger run keeps every 2nd, 3rd, … header
MAX_SOURCES = 30  # names that are told apart; a server with more of them isn't telling sources
OTHER_SOURCES = b"(more)"


class Outcomes:
    """One row a request, by its number.

    Plain arrays: recording costs a tenth of a microsecond, the histograms are filled when the clock has stopped.
    """

    def __init__(self, intended_ns: array[int], *, first_recorded: int = 0) -> None:
        count = len(intended_ns)
        self.intended_ns = intended_ns
        self.first_recorded = first_recorded
        self.status = array("h", bytes(2 * count))
        self.sent_ns = array("q", bytes(8 * count))  # 0 where it never found a connection
        self.ended_ns = array("q", bytes(8 * count))
        self.source = array("b", bytes(count))  # a place in source_names; 0 where the reply has none
        self.source_names: list[bytes] = [b""]
        self.waited_for_connection = 0
        self.answered = 0
        self.failed = 0
        self.server_timings: list[bytes] = []
        self._header_stride = (count - first_recorded) // MAX_SERVER_TIMINGS + 1

    def end(self, number: int, status: int) -> None:
        self.status[number] = status
        self.ended_ns[number] = time.monotonic_ns()
        if status > 0:
            self.answered += 1
        else:
            self.failed += 1

    def note_source(self, number: int, name: bytes) -> None:
        names = self.source_names
        if name not in names:
            name = name if len(names) <= MAX_SOURCES else OTHER_SOURCES
            if name not in names:
                names.append(name)
        self.source[number] = names.index(name)

    def note_server_timing(self, number: int, header: bytes) -> None:
        past_warmup = number - self.first_recorded
        if past_warmup >= 0 and past_warmup % self._header_stride == 0:
            self.server_timings.append(header)


@dataclass(frozen=True, slots=True)
class Recording:
    """The recorded part of a run, a row for each request meant to leave in it, in their order. Times are monotonic."""

    steps: Sequence[Span]  # the average rates that were asked for, one after the other
    start_ns: int
    intended_ns: NDArray[np.int64]  # [n], as are the others
    lag_ns: NDArray[np.int64]  # how late the generator was
    sent_ns: NDArray[np.int64]  # 0 where it never found a connection
    ended_ns: NDArray[np.int64]
    status: NDArray[np.int16]  # HTTP's, or one of ERRORS
    source: NDArray[np.int8]  # a place in source_names
    source_names: list[str]
    server_timings: list[bytes]
    waited_for_connection: int
    cpu_s: float  # of the generator's process, from the start to the last outcome
    is_realtime: bool

    @classmethod
    def of(
        cls,
        outcomes: Outcomes,
        lag_ns: array[int],
        *,
        steps: Sequence[Span],
        start_ns: int,
        cpu_s: float,
        is_realtime: bool,
    ) -> Recording:
        recorded = slice(outcomes.first_recorded, None)
        return cls(
            steps=steps,
            start_ns=start_ns,
            intended_ns=np.array(outcomes.intended_ns, np.int64)[recorded],
            lag_ns=np.array(lag_ns, np.int64)[recorded],
            sent_ns=np.array(outcomes.sent_ns, np.int64)[recorded],
            ended_ns=np.array(outcomes.ended_ns, np.int64)[recorded],
            status=np.array(outcomes.status, np.int16)[recorded],
            source=np.array(outcomes.source, np.int8)[recorded],
            source_names=[name.decode("utf-8", "replace") for name in outcomes.source_names],
            server_timings=outcomes.server_timings,
            waited_for_connection=outcomes.waited_for_connection,
            cpu_s=cpu_s,
            is_realtime=is_realtime,
        )

    def __len__(self) -> int:
        return self.status.size

    @property
    def latency_ms(self) -> NDArray[np.float64]:
        """From the intended send; of those given up, the time they had waited."""
        return (self.ended_ns - self.intended_ns) / 1e6

    @property
    def is_ok(self) -> NDArray[np.bool_]:
        return (self.status >= 200) & (self.status < 300)

    @property
    def planned_s(self) -> float:
        return sum(step.seconds for step in self.steps)

    @property
    def elapsed_s(self) -> float:
        """From the start to the last outcome."""
        return float(self.ended_ns.max() - self.start_ns) / NS_PER_S
