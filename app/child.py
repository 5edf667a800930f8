"""A worker's place in the service, and when the process in it hangs, may start again or is given up.

No clock inside: the supervisor passes the time, tests pass numbers.
"""

from __future__ import annotations

import asyncio
from collections import deque

from app.releases import Release
from app.status_board import Line, WorkerState

RESTART_BACKOFF_S = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)
# So many deaths in a row of a worker that was never ready for so many seconds are no accident: let the platform replace
# the whole.
CRASH_LOOP_DEATHS = 6
CRASH_LOOP_S = 60.0


class Child:
    """Its index, slot and release stay, the process in it may change. Times are seconds of a monotonic clock.

    ``least`` is how many replicas have to come up at its first start; None: all of them.
    """

    def __init__(
        self, index: int, *, slot: int, release: Release, load_timeout_s: float, stall_timeout_s: float
    ) -> None:
        self.index = index
        self.slot = slot
        self.release = release
        self.least: int | None = None
        self.is_leaving = False  # for good: another one has its place, or is about to
        self.process: asyncio.subprocess.Process | None = None
        self.started_at = 0.0
        self.was_ready = False
        self.restart_at: float | None = None
        self._ready_at = 0.0
        self._deaths: deque[float] = deque(maxlen=CRASH_LOOP_DEATHS)
        self._load_timeout_s = load_timeout_s
        self._stall_timeout_s = stall_timeout_s

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.returncode is None

    def is_up(self, line: Line) -> bool:
        """Whether this line of the status board says that this very process has loaded its model."""
        assert self.process is not None
        return line.pid == self.process.pid and line.state in (WorkerState.SERVING, WorkerState.DRAINING)

    def observe(self, line: Line) -> None:
        """Note whether it was ready: a worker that dies before that would only die again."""
        if self.is_up(line):
            self.was_ready = True
            if self._ready_at < self.started_at:
                self._ready_at = line.heartbeat

    def silence_s(self, line: Line, now: float) -> float:
        """Seconds without a sign of life: since the last heartbeat, or since the start while the model loads."""
        return now - (line.heartbeat if self.is_up(line) else self.started_at)

    def is_hanging(self, line: Line, now: float) -> bool:
        """Loading may hold the interpreter for long and has its own limit; later, silence means that it hangs."""
        limit_s = self._stall_timeout_s if self.is_up(line) else self._load_timeout_s
        return self.silence_s(line, now) > limit_s

    def record_death(self, now: float) -> bool:
        """Note a death; whether the worker is in a crash loop: so many in a row without a healthy minute."""
        if self._ready_at > self.started_at and now - self._ready_at > CRASH_LOOP_S:
            self._deaths.clear()
        self._deaths.append(now)
        return len(self._deaths) == CRASH_LOOP_DEATHS

    def backoff_s(self, now: float) -> float:
        """How long to wait before the next start: longer the more often it died of late."""
        recent = sum(now - death < CRASH_LOOP_S for death in self._deaths)
        return RESTART_BACKOFF_S[min(max(recent, 1), len(RESTART_BACKOFF_S)) - 1]
