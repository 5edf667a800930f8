"""Virtual time: what happens when, one thing after another."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from typing import Any

# Told the time, in seconds from the start, and what it was scheduled with.
Action = Callable[[float, Any], None]


class Timeline:
    """Runs actions in the order of their times, those of one moment in the order they were scheduled."""

    def __init__(self) -> None:
        self._events: list[tuple[float, int, Action, Any]] = []
        self._order = itertools.count()

    def at(self, time_s: float, action: Action, argument: Any) -> None:
        heapq.heappush(self._events, (time_s, next(self._order), action, argument))

    def run(self) -> None:
        """Until nothing is left to happen."""
        events = self._events
        while events:
            now, _, action, argument = heapq.heappop(events)
            action(now, argument)
