"""The clients: keep-alive connections that send bytes and say how each request ended."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import cast

import httptools

from benchmarks.soak.mix import Asked

UNANSWERED_AFTER_S = 30.0
CONNECT_RETRY_S = 0.05
STATUS_LOST, STATUS_LEFT, STATUS_SILENT = 0, -1, -2  # ends that are no HTTP status

# Told the status, or one of the above, and the body.
OnEnd = Callable[[Asked, int, bytes], None]


class Clients:
    """``size`` connections at most, each with at most one request in flight; what finds none free waits, in order.

    Bad input has a connection of its own, since the server ends some of them.
    """

    def __init__(self, address: tuple[str, int], *, size: int, on_end: OnEnd) -> None:
        self.on_end = on_end
        self.in_flight: dict[_Client, float] = {}  # since when
        self._address = address
        self._size = size
        self._idle: deque[_Client] = deque()
        self._open = 0
        self._waiting: deque[Asked] = deque()
        self._tasks: set[asyncio.Task[None]] = set()

    def send(self, asked: Asked) -> None:
        if asked.bad is None and self._idle:
            self._idle.popleft().send(asked)
        elif asked.bad is not None or self._open < self._size:
            self._open += asked.bad is None
            task = asyncio.get_running_loop().create_task(self._connect_task(asked))
            self._tasks.add(task)  # the loop itself keeps only weak references
            task.add_done_callback(self._tasks.discard)
        else:
            self._waiting.append(asked)

    @property
    def unfinished(self) -> int:
        """Requests without an end."""
        return len(self._waiting) + len(self._tasks) + len(self.in_flight)

    def give_up_silent(self) -> None:
        """End the requests that nothing has happened on for UNANSWERED_AFTER_S."""
        limit = time.monotonic() - UNANSWERED_AFTER_S
        for client in [client for client, since in self.in_flight.items() if since < limit]:
            client.end(STATUS_SILENT, b"")
            client.abort()

    async def drain(self, limit_s: float) -> None:
        """Until every request has ended, but for ``limit_s`` at most; closes the connections."""
        until = time.monotonic() + limit_s
        while self.unfinished and time.monotonic() < until:
            await asyncio.sleep(0.05)
            self.give_up_silent()
        self.close()

    def close(self) -> None:
        for client in tuple(self._idle):
            client.abort()

    def released(self, client: _Client) -> None:
        if self._waiting:
            client.send(self._waiting.popleft())
        else:
            self._idle.append(client)

    def left(self, client: _Client) -> None:
        if client in self._idle:
            self._idle.remove(client)
        self._free_place()

    def _free_place(self) -> None:
        self._open -= 1
        if self._waiting:
            self.send(self._waiting.popleft())

    async def _connect_task(self, asked: Asked) -> None:
        """Connect and send; the listener belongs to the supervisor, so it is there whichever worker is not."""
        client = _Client(self, is_shared=asked.bad is None)
        try:
            await asyncio.get_running_loop().create_connection(lambda: client, *self._address)
        except OSError:
            self.on_end(asked, STATUS_LOST, b"")
            await asyncio.sleep(CONNECT_RETRY_S)
            if client.is_shared:
                self._free_place()
        else:
            client.send(asked)


class _Client(asyncio.Protocol):
    """One connection."""

    def __init__(self, clients: Clients, *, is_shared: bool) -> None:
        self.is_shared = is_shared
        self._clients = clients
        self._parser = httptools.HttpResponseParser(self)
        self._asked: Asked | None = None
        self._body: list[bytes] = []
        self._leaving: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are no subclass of it

    def send(self, asked: Asked) -> None:
        self._asked = asked
        self._clients.in_flight[self] = time.monotonic()
        self._transport.write(asked.data)
        if asked.leaves_after_s is not None:
            self._leaving = asyncio.get_running_loop().call_later(asked.leaves_after_s, self._leave)

    def end(self, status: int, body: bytes) -> None:
        asked, self._asked = self._asked, None
        self._clients.in_flight.pop(self, None)
        if self._leaving is not None:
            self._leaving.cancel()
            self._leaving = None
        if asked is not None:
            self._clients.on_end(asked, status, body)

    def abort(self) -> None:
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self.end(STATUS_LOST, b"")
            self.abort()

    def on_message_begin(self) -> None:
        self._body = []

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        if (status := self._parser.get_status_code()) < 200:
            return  # an interim reply: the final one follows
        is_expected = self._asked is not None  # else the client has left, or the server says why it closes
        self.end(status, b"".join(self._body))
        if self.is_shared and is_expected and self._parser.should_keep_alive():
            self._clients.released(self)
        else:
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.end(STATUS_LOST, b"")
        if self.is_shared:
            self._clients.left(self)

    def _leave(self) -> None:
        self.end(STATUS_LEFT, b"")
        self._transport.abort()
