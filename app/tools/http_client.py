"""A keep-alive HTTP/1.1 client that costs the load tester next to nothing: encoded requests in, outcomes out.

Client libraries cost a multiple of what the service itself spends on a request, and on the server's own machine that
time is taken from what is measured. Here a request is one write of bytes made before the run and a reply one pass of
llhttp, which also gets chunked, split and closing replies right.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import time
from array import array
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast
from urllib.parse import urlsplit

import httptools

CONNECT_TIMEOUT_S = 5.0
RECONNECT_DELAY_S = 0.05
SWEEP_INTERVAL_S = 0.02

# Outcomes that are no HTTP status. Requests are pending until something ends them.
PENDING, TIMEOUT, UNSENT, CLOSED, MALFORMED = 0, -1, -2, -3, -4
ERRORS = {
    TIMEOUT: "timeout",  # sent, and no complete reply within the time limit
    UNSENT: "unsent",  # no connection was free within the time limit
    CLOSED: "closed",  # the connection broke before the reply was complete
    MALFORMED: "malformed",  # what came back was no HTTP
}


@dataclass(frozen=True)
class Target:
    """An http URL, resolved once so that no look-up is part of a measurement."""

    url: str
    host_header: str
    path: str
    address: str
    port: int

    @classmethod
    def parse(cls, url: str) -> Target:
        """Raises ValueError for what is no http URL and OSError for a host that does not resolve."""
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname:
            raise ValueError(f"{url!r} is not an http:// URL")
        if not url.isascii():
            raise ValueError(f"{url!r} has characters that must be percent-encoded")
        port = parts.port or 80
        found = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        return cls(url, parts.netloc.rpartition("@")[2], path, str(found[0][4][0]), port)

    @property
    def is_loopback(self) -> bool:
        return ipaddress.ip_address(self.address.partition("%")[0]).is_loopback

    def encode(self, body: bytes) -> bytes:
        head = (
            f"POST {self.path} HTTP/1.1\r\nHost: {self.host_header}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return head.encode("ascii") + body


class Outcomes:
    """What became of each request, by its number; written during the run, read after it.

    Plain arrays: recording costs a tenth of a microsecond, the histograms are filled when the clock has stopped.
    """

    def __init__(self, intended_ns: array[int], *, first_recorded: int = 0, header_stride: int = 1) -> None:
        count = len(intended_ns)
        self.intended_ns = intended_ns
        self.first_recorded = first_recorded
        self.header_stride = header_stride  # every how manieth Server-Timing header is kept
        self.status = array("h", bytes(2 * count))
        self.ended_ns = array("q", bytes(8 * count))
        self.waited_for_connection = 0
        self.answered = 0
        self.failed = 0
        self.sources: Counter[bytes] = Counter()
        self.server_timings: list[bytes] = []

    def end(self, number: int, status: int) -> None:
        self.status[number] = status
        self.ended_ns[number] = time.monotonic_ns()
        if status > 0:
            self.answered += 1
        else:
            self.failed += 1


class ConnectionPool:
    """A fixed number of connections used in turn; a request that finds none free waits here, in order.

    In turn, not the latest first: every connection carries its share, also of the server's worker behind it.
    """

    def __init__(
        self, target: Target, requests: Sequence[bytes], outcomes: Outcomes, *, size: int, timeout_s: float
    ) -> None:
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
            self._idle.popleft().send(number, self._requests[number % len(self._requests)])
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
            connection.send(number, self._requests[number % len(self._requests)])
        else:
            self._idle.append(connection)
            self._notice_drained()

    def left(self, connection: Connection) -> None:
        self._connections.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)
        self._notice_drained()
        self._spawn_reconnect_task()

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
        self._pool = pool
        self._outcomes = pool.outcomes
        self._parser = httptools.HttpResponseParser(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are no subclass of it
        self._pool.joined(self)

    def send(self, number: int, request: bytes) -> None:
        self.number = number
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self.fail(MALFORMED)

    def on_header(self, name: bytes, value: bytes) -> None:
        if len(name) == 13 and self.number is not None and name.lower() == b"server-timing":
            past_warmup = self.number - self._outcomes.first_recorded
            if past_warmup >= 0 and past_warmup % self._outcomes.header_stride == 0:
                self._outcomes.server_timings.append(value)

    def on_body(self, body: bytes) -> None:
        # A search instead of parsing the JSON. Quotes inside of strings are escaped, so no query can look like this.
        start = body.find(b'"source":"') + 10
        if start > 9 and self.number is not None and self.number >= self._outcomes.first_recorded:
            self._outcomes.sources[body[start : body.find(b'"', start)]] += 1

    def on_message_complete(self) -> None:
        number = self.number
        if number is None:  # a reply to nothing, such as a server's 408 before it closes
            return self._transport.close()
        self.number = None
        self._outcomes.end(number, self._parser.get_status_code())
        if self._parser.should_keep_alive():
            self._pool.release(self)
        else:
            self._transport.close()
        return None

    def fail(self, error: int) -> None:
        if self.number is not None:
            self._outcomes.end(self.number, error)
            self.number = None
        self.abort()

    def abort(self) -> None:
        self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.number is not None:
            self._outcomes.end(self.number, CLOSED)
            self.number = None
        self._pool.left(self)
