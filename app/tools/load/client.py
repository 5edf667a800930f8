"""A keep-alive HTTP/1.1 client that costs the load tester next to nothing: encoded requests in, outcomes out.

Client libraries cost a multiple of what the service itself spends on a request, and on the server's own machine that
time is taken from what is measured. Here a request is one write of bytes made before the run and a reply one pass of
llhttp, which also gets chunked, split and closing replies right.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import deque
from collections.abc import Sequence
from typing import cast

import httptools

from app.tools.load.outcomes import CLOSED, MALFORMED, RESET, TIMEOUT, UNSENT, Outcomes
from app.tools.load.target import Target

CONNECT_TIMEOUT_S = 5.0
RECONNECT_DELAY_S = 0.05
SWEEP_INTERVAL_S = 0.02

# A search costs less than parsing the JSON, and finds the same: quotes inside of strings are escaped, so no query can
# look like a member.
SOURCE = re.compile(rb'"source"\s*:\s*"([^"\\]{1,40})"')


class ConnectionPool:
    """A fixed number of connections used in turn; a request that finds none free waits here, in order.

    In turn, not the latest first: every connection carries its share, also of the server's worker behind it.
    """

    def __init__(
        self, target: Target, requests: Sequence[bytes], outcomes: Outcomes, *, size: int, timeout_s: float
    ) -> None:
        """``requests`` has what goes over the wire, by number."""
        self.outcomes = outcomes
        self._target = target
        self._requests = requests
        self._size = size
        self._timeout_ns = int(timeout_s * 1e9)
        self._loop = asyncio.get_running_loop()
        self._idle: deque[Connection] = deque()
        self._connections: set[Connection] = set()
        self._waiting: deque[int] = deque()
        self._tasks: set[asyncio.Task[None]] = set()  # the loop itself keeps only weak references
        self._drained: asyncio.Future[None] | None = None
        self._sweep_timer: asyncio.TimerHandle | None = None
        self._closing = False

    def __repr__(self) -> str:
        idle, waiting = len(self._idle), len(self._waiting)
        return f"<ConnectionPool: {len(self._connections)} connections, {idle} idle, {waiting} waiting>"

    async def open(self) -> None:
        """Connect all before the first request. Raises OSError when that fails, TimeoutError when it takes too long."""
        await asyncio.wait_for(asyncio.gather(*(self._connect() for _ in range(self._size))), CONNECT_TIMEOUT_S)
        self._sweep()

    def send(self, number: int) -> None:
        """Send request ``number``, now or when a connection is free. Its latency counts from its intended time."""
        if self._idle:
            self._idle.popleft().send(number, self._requests[number])
        else:
            self._waiting.append(number)
            self.outcomes.waited_for_connection += number >= self.outcomes.first_recorded

    async def drain(self) -> None:
        """Until all that was sent has ended; the time limit ends what the server does not."""
        if not self._is_drained:
            self._drained = self._loop.create_future()
            await self._drained

    async def aclose(self) -> None:
        self._closing = True
        if self._sweep_timer:
            self._sweep_timer.cancel()
        for task in self._tasks:
            task.cancel()
        for connection in tuple(self._connections):
            connection.abort()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.sleep(0)  # connection_lost comes a turn of the loop later

    def joined(self, connection: Connection) -> None:
        self._connections.add(connection)
        self.release(connection)

    def release(self, connection: Connection) -> None:
        if self._waiting:
            number = self._waiting.popleft()
            connection.send(number, self._requests[number])
        else:
            self._idle.append(connection)
            self._notice_drained()

    def retire(self, connection: Connection) -> None:
        """Give it no more requests."""
        if connection in self._idle:
            self._idle.remove(connection)

    def left(self, connection: Connection) -> None:
        self.retire(connection)
        self._connections.discard(connection)
        self._notice_drained()
        # A server that hangs up on newcomers, as one with too many connections does, isn't asked without a pause.
        self._loop.call_later(0 if connection.has_answered else RECONNECT_DELAY_S, self._spawn_reconnect_task)

    async def _connect(self) -> None:
        await self._loop.create_connection(lambda: Connection(self), self._target.address, self._target.port)

    def _spawn_reconnect_task(self) -> None:
        if not self._closing:
            task = self._loop.create_task(self._reconnect_task())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _reconnect_task(self) -> None:
        try:
            await self._connect()
        except OSError:
            self._loop.call_later(RECONNECT_DELAY_S, self._spawn_reconnect_task)

    def _sweep(self) -> None:
        """End what is over its time. One sweep now and then instead of a timer for each request."""
        give_up_before = time.monotonic_ns() - self._timeout_ns
        intended_ns = self.outcomes.intended_ns
        while self._waiting and intended_ns[self._waiting[0]] < give_up_before:
            self.outcomes.end(self._waiting.popleft(), UNSENT)
        for connection in tuple(self._connections):
            if connection.number is not None and intended_ns[connection.number] < give_up_before:
                connection.fail(TIMEOUT)
        self._notice_drained()
        self._sweep_timer = self._loop.call_later(SWEEP_INTERVAL_S, self._sweep)

    @property
    def _is_drained(self) -> bool:
        return not self._waiting and all(connection.number is None for connection in self._connections)

    def _notice_drained(self) -> None:
        if self._drained and not self._drained.done() and self._is_drained:
            self._drained.set_result(None)


class Connection(asyncio.Protocol):
    """One keep-alive connection with at most one request in flight."""

    def __init__(self, pool: ConnectionPool) -> None:
        self.number: int | None = None
        self.has_answered = False
        self._pool = pool
        self._outcomes = pool.outcomes
        self._parser = httptools.HttpResponseParser(self)
        self._body: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are no subclass of it
        self._pool.joined(self)

    def send(self, number: int, request: bytes) -> None:
        self.number = number
        self._outcomes.sent_ns[number] = time.monotonic_ns()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self.fail(MALFORMED)

    def on_message_begin(self) -> None:
        self._body = []

    def on_header(self, name: bytes, value: bytes) -> None:
        if len(name) == 13 and self.number is not None and name.lower() == b"server-timing":
            self._outcomes.note_server_timing(self.number, value)

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        number, status = self.number, self._parser.get_status_code()
        if number is None:  # a reply to nothing, such as a server's 408 before it closes
            self._pool.retire(self)
            self._transport.close()
        elif status >= 200:  # below is an interim reply: the final one follows
            self.number = None
            self.has_answered = True
            self._outcomes.end(number, status)
            if source := SOURCE.search(b"".join(self._body)):
                self._outcomes.note_source(number, source[1])
            if self._parser.should_keep_alive():
                self._pool.release(self)
            else:
                self._transport.close()

    def fail(self, error: int) -> None:
        if self.number is not None:
            self._outcomes.end(self.number, error)
            self.number = None
        self.abort()

    def abort(self) -> None:
        self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.number is not None:
            self._outcomes.end(self.number, RESET if exc else CLOSED)
            self.number = None
        self._pool.left(self)
