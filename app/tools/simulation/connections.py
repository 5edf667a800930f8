"""Keep-alive connections: each belongs to one worker for good, so they decide which queue a query can't leave."""

from __future__ import annotations

import heapq
from random import Random


class Connections:
    """``count`` connections, each with the worker that was the quickest to accept it, which is chance.

    A query takes one of those that are free, whichever, since clients don't know of each other. Where none is free it
    takes any: arrivals are open-loop, and a client that finds its connections busy opens another rather than wait.
    """

    def __init__(self, count: int, *, workers: int, rng: Random) -> None:
        self._worker = [rng.randrange(workers) for _ in range(count)]
        self._in_use = [0] * count
        self._free = list(range(count))
        self._releases: list[tuple[float, int]] = []  # a heap: replies that are written later
        self._rng = rng

    def __repr__(self) -> str:
        return f"<Connections: {len(self._free)} of {len(self._worker)} free>"

    def take(self, now: float) -> tuple[int, int]:
        """A connection and its worker."""
        while self._releases and self._releases[0][0] <= now:
            self._release(heapq.heappop(self._releases)[1])
        free = self._free
        if free:
            place = self._rng.randrange(len(free))
            free[place], free[-1] = free[-1], free[place]
            connection = free.pop()
        else:
            connection = self._rng.randrange(len(self._worker))
        self._in_use[connection] += 1
        return connection, self._worker[connection]

    def release(self, connection: int, at: float) -> None:
        """The reply on it is written at ``at``."""
        heapq.heappush(self._releases, (at, connection))

    def _release(self, connection: int) -> None:
        self._in_use[connection] -= 1
        if not self._in_use[connection]:
            self._free.append(connection)
