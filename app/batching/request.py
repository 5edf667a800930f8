"""A request on the event loop: it waits for what becomes of its queries, and for no longer than its deadline."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple, Protocol

from app.errors import DeadlineExceeded


class Outcome(NamedTuple):
    """What became of one query: its ``result`` (an exception where it failed), and the seconds it took."""

    result: Any
    queue_s: float
    inference_s: float


class Owner(Protocol):
    """Who is told, on the event loop, what became of an entry of the queue: a request, or what several share."""

    def settle(self, index: int, outcome: Outcome) -> None:
        """The outcome of the entry that its owner calls ``index``."""
        ...

    def fail(self, error: Exception) -> None:
        """There will be no outcome."""
        ...


class Request:
    """Waits for the outcomes of ``remaining`` queries."""

    __slots__ = ("_answered", "_loop", "_outcomes", "remaining")

    def __init__(self, size: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._answered: asyncio.Future[list[Outcome]] = self._loop.create_future()
        self._outcomes: list[Any] = [None] * size
        self.remaining = size

    async def wait(self, timeout_s: float) -> list[Outcome]:
        """All outcomes, in order. Raises what it was failed with, and ``DeadlineExceeded`` after ``timeout_s``."""
        timer = self._loop.call_later(timeout_s, self._expire)
        try:
            return await self._answered
        finally:
            timer.cancel()

    def settle(self, index: int, outcome: Outcome) -> None:
        self._outcomes[index] = outcome
        self.remaining -= 1
        if self.remaining == 0 and not self._answered.done():
            self._answered.set_result(self._outcomes)

    def fail(self, error: Exception) -> None:
        if not self._answered.done():
            self._answered.set_exception(error)

    def _expire(self) -> None:
        self.fail(too_late())


def too_late() -> DeadlineExceeded:
    return DeadlineExceeded("the answer did not come before the deadline")
