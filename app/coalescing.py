"""Identical queries in flight share one computation, so that a query that is suddenly everybody's is computed once.

A flight is one text on its way through the queue. It lives until the latest deadline of those who wait for it; each of
them gives up at its own, or when its client leaves, and the last one gone takes the text out of the queue.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from app.batching.entry import Entry, State
from app.batching.pool import ReplicaPool
from app.batching.request import Outcome, Request
from app.tokenization import Tokens


class Flight:
    """One text that is being computed; the owner of its ``entry`` in the queue."""

    __slots__ = ("_on_landed", "_waiting", "entry", "text", "tokens")

    def __init__(self, text: str, tokens: Tokens, entry: Entry, on_landed: Callable[[Flight, Any], None]) -> None:
        self.text = text
        self.tokens = tokens
        self.entry = entry
        self._on_landed = on_landed
        self._waiting: dict[Request, tuple[int, float]] = {}  # the text's place in the request; when that joined

    def __repr__(self) -> str:
        return f"<Flight for {len(self._waiting)} requests, {self.entry!r}>"

    @property
    def is_wanted(self) -> bool:
        return bool(self._waiting)

    def board(self, request: Request, index: int, now: float) -> None:
        self._waiting[request] = index, now

    def leave(self, request: Request) -> None:
        self._waiting.pop(request, None)

    def settle(self, _index: int, outcome: Outcome) -> None:
        """Hand the outcome to everybody, with the seconds that each of them has waited for it."""
        self._on_landed(self, outcome.result)
        started_at = self.entry.enqueued_at + outcome.queue_s
        finished_at = started_at + outcome.inference_s
        for request, (index, joined_at) in self._waiting.items():
            queue_s = max(0.0, started_at - joined_at)
            inference_s = max(0.0, finished_at - max(started_at, joined_at))
            request.settle(index, Outcome(outcome.result, queue_s, inference_s))

    def fail(self, error: Exception) -> None:
        self._on_landed(self, error)
        for request in self._waiting:
            request.fail(error)


class Flights:
    """All texts that are being computed, at most one flight each. Everything here happens on the event loop.

    A caller joins or starts flights and waits for them without awaiting anything in between. ``on_landed`` is told of
    each flight and its result, which may be an exception. Deadlines are in seconds of ``clock``, which is the pool's.
    """

    def __init__(
        self,
        pool: ReplicaPool,
        *,
        on_landed: Callable[[Flight, Any], None] = lambda _flight, _result: None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._pool = pool
        self._on_landed = on_landed
        self._clock = clock
        self._by_text: dict[str, Flight] = {}

    def __len__(self) -> int:
        return len(self._by_text)

    def join(self, text: str, *, deadline: float, is_bulk: bool = False) -> Flight | None:
        """The flight of this text, which now lives until ``deadline`` at least; ``None`` where one must be started.

        Nobody is refused here: who joins adds no work.
        """
        flight = self._by_text.get(text)
        if flight is None or not self._pool.extend(flight.entry, deadline):
            return None
        if flight.entry.is_bulk and not is_bulk and flight.entry.state is State.WAITING:
            return None  # in the queue of the lists it would be behind every other single query
        return flight

    def start(self, tokens: Mapping[str, Tokens], *, deadline: float, is_bulk: bool = False) -> list[Flight]:
        """A flight for each text that ``join`` found none for, all admitted or none.

        Raises ``NotReady``, ``Overloaded`` or ``PayloadTooLarge``.
        """
        now = self._clock()
        entries = [Entry(each.ids, enqueued_at=now, deadline=deadline, is_bulk=is_bulk) for each in tokens.values()]
        self._pool.admit(entries)
        flights = []
        for (text, each), entry in zip(tokens.items(), entries, strict=True):
            flight = self._by_text.get(text)
            if flight is not None and flight.entry.state is not State.DONE:
                # A list waits for this text, and a single query goes ahead of lists: it takes the list's along.
                self._pool.abandon([flight.entry])
                self._pool.extend(entry, flight.entry.deadline)
                flight.entry = entry
            else:
                flight = self._by_text[text] = Flight(text, each, entry, self._land)
            entry.owner = flight
            flights.append(flight)
        return flights

    def wait(self, flights: Sequence[Flight], *, deadline: float) -> Coroutine[Any, Any, list[Outcome]]:
        """Be one of those who wait for ``flights``; what to await is their outcomes, in order.

        Raises ``DeadlineExceeded`` at the caller's own deadline, and what failed a flight as a whole. Neither that nor
        a cancellation of the caller touches whoever else waits for the same flights.
        """
        now = self._clock()
        request = Request(len(flights))
        for index, flight in enumerate(flights):
            flight.board(request, index, now)
        return self._wait(request, flights, deadline)

    async def _wait(self, request: Request, flights: Sequence[Flight], deadline: float) -> list[Outcome]:
        try:
            return await request.wait(deadline - self._clock())
        except asyncio.CancelledError:
            self._pool.count_cancelled(flight.entry for flight in flights)
            raise
        finally:
            if request.remaining:
                self._leave(request, flights)

    def _leave(self, request: Request, flights: Sequence[Flight]) -> None:
        orphans = []
        for flight in flights:
            flight.leave(request)
            if not flight.is_wanted and self._by_text.get(flight.text) is flight:
                del self._by_text[flight.text]
                orphans.append(flight.entry)
        if orphans:
            self._pool.abandon(orphans)

    def _land(self, flight: Flight, result: Any) -> None:
        # The next one of the same text may be under way already, where the queue found this one expired.
        if self._by_text.get(flight.text) is flight:
            del self._by_text[flight.text]
        self._on_landed(flight, result)
