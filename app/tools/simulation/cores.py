"""The cores that rows and event loops run on: one for each, or the same ones for all."""

from __future__ import annotations

import heapq
import itertools
from typing import Any, Protocol

from app.tools.simulation.timeline import Action, Timeline


class EventLoop:
    """A worker's event loop, which does one thing after another."""

    def __init__(self, cores: Cores) -> None:
        self.busy_until = 0.0
        self.busy_s = 0.0
        self._cores = cores

    def spend(self, now: float, seconds: float) -> float:
        """Do something that takes ``seconds``, once all before it is done; returns when it ends."""
        self.busy_until = max(now, self.busy_until) + seconds
        self.busy_s += seconds
        if seconds:
            self._cores.hold(now, self)
        return self.busy_until


class Cores(Protocol):
    def run_row(self, now: float, seconds: float, ended: Action, argument: Any) -> None:
        """Begin a row that needs a core for ``seconds``, and have ``ended`` called when it had them."""
        ...

    def hold(self, now: float, loop: EventLoop) -> None:
        """The loop needs a core from now until it is no longer busy."""
        ...


class OwnCores:
    """An accelerator's: each replica has a core, and the host has enough for the event loops."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline

    def run_row(self, now: float, seconds: float, ended: Action, argument: Any) -> None:
        self._timeline.at(now + seconds, ended, argument)

    def hold(self, now: float, loop: EventLoop) -> None:
        pass


class SharedCores:
    """A CPU's ``count`` cores for event loops and rows together.

    A loop that wakes goes first, as Linux lets a thread that slept go before those that compute; rows share what is
    left in equal parts. Their progress is counted in virtual seconds, which pass at each row's share of a core, so that
    a row ends ``seconds`` of them after it began whatever joins or leaves meanwhile (Parekh and Gallager, 1993).
    """

    def __init__(self, timeline: Timeline, count: int) -> None:
        self._timeline = timeline
        self._count = count
        self._loops: set[EventLoop] = set()
        self._rows: list[tuple[float, int, Action, Any]] = []  # a heap by the virtual second of their end
        self._order = itertools.count()
        self._virtual = 0.0
        self._rate = 0.0
        self._changed_at = 0.0
        self._version = 0

    def run_row(self, now: float, seconds: float, ended: Action, argument: Any) -> None:
        self._advance(now)
        heapq.heappush(self._rows, (self._virtual + seconds, next(self._order), ended, argument))
        self._share(now)

    def hold(self, now: float, loop: EventLoop) -> None:
        if loop not in self._loops:
            self._advance(now)
            self._loops.add(loop)
            self._share(now)
            self._timeline.at(loop.busy_until, self._release, loop)

    def _release(self, now: float, loop: EventLoop) -> None:
        if loop.busy_until > now:  # more came to do meanwhile
            self._timeline.at(loop.busy_until, self._release, loop)
            return
        self._advance(now)
        self._loops.remove(loop)
        self._share(now)

    def _advance(self, now: float) -> None:
        self._virtual += self._rate * (now - self._changed_at)
        self._changed_at = now

    def _share(self, now: float) -> None:
        """What each row gets of a core from now on, and so when the first of them ends."""
        self._version += 1
        if not self._rows:
            return
        self._rate = min(1.0, max(0, self._count - len(self._loops)) / len(self._rows))
        if self._rate:
            self._timeline.at(now + (self._rows[0][0] - self._virtual) / self._rate, self._end_row, self._version)

    def _end_row(self, now: float, version: int) -> None:
        if version != self._version:  # the shares have changed since
            return
        self._advance(now)
        _, _, ended, argument = heapq.heappop(self._rows)
        self._share(now)
        ended(now, argument)
