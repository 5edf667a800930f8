"""A request on its way past ASGI: its headers and body as they came, and the one way to answer it.

uvicorn makes a cycle of each request, a task and two messages of each reply. For a reply that needs no row that is a
third of all there is to do, so routes that every query takes get an exchange instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, Protocol

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from app.errors import QueryIntentError
from app.request_id import make_request_id

Headers = Sequence[tuple[bytes, bytes]]  # names in lower case


class Handles(Protocol):
    """What answers the exchanges of one route."""

    max_body_bytes: int

    def refusal_of(self, headers: Headers) -> QueryIntentError | None:
        """Why the body of a request with these headers need not be read, if it need not."""
        ...

    def __call__(self, exchange: Exchange) -> None:
        """Answer it, now or later. Called once its body is here or ``refusal`` says why that is not waited for."""
        ...


class Connection(Protocol):
    """What an exchange needs of the connection on which it came."""

    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport
    tasks: set[asyncio.Task[None]]

    def default_headers(self) -> bytes:
        """Header lines of every reply."""
        ...

    def on_response_complete(self) -> None: ...


class _NobodyWaits:
    """uvicorn tells a cycle's ASGI receiver that something came; an exchange has none."""

    def set(self) -> None:
        pass


class Exchange:
    """One request and its reply. For uvicorn's connection it is the cycle, whose names these are where it reads them.

    ``read_at`` is when all of it had been read, in seconds of ``time.perf_counter``.
    """

    __slots__ = (
        "_connection", "_request_id", "_task", "body", "disconnected", "handler", "headers", "in_turn", "keep_alive",
        "more_body", "read_at", "refusal", "response_complete", "response_started",
    )  # fmt: skip
    message_event = _NobodyWaits()

    def __init__(self, connection: Connection, handler: Handles, headers: Headers, *, keep_alive: bool) -> None:
        self.handler = handler
        self.headers = headers
        self.keep_alive = keep_alive
        self.body: bytes | bytearray = b""
        self.more_body = True
        self.read_at = 0.0
        self.refusal: QueryIntentError | None = None
        self.in_turn = False  # whatever came before it on its connection has been answered
        self.response_started = False
        self.response_complete = False
        self.disconnected = False
        self._connection = connection
        self._request_id: str | None = None
        self._task: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        state = "answered" if self.response_complete else "arriving" if self.more_body else "waiting"
        return f"<Exchange {state}, {len(self.body)} bytes>"

    @property
    def request_id(self) -> str:
        """The caller's own where it is fit for a log, else one of ours."""
        if self._request_id is None:
            self._request_id = make_request_id(self.headers)
        return self._request_id

    @property
    def is_abandoned(self) -> bool:
        """Whether nobody is there any more to be answered."""
        return self._connection.transport.is_closing()

    def receive(self, data: bytes) -> None:
        """More of its body, which nearly always comes in one piece."""
        if not self.body:
            self.body = data
            return
        if isinstance(self.body, bytes):
            self.body = bytearray(self.body)  # grows without being copied each time
        self.body += data

    def run(self, answering: Coroutine[Any, Any, None]) -> None:
        """Answer in a task, which is cancelled when the client leaves, or at the end of the server's patience."""
        tasks = self._connection.tasks
        self._task = self._connection.loop.create_task(answering)
        tasks.add(self._task)
        self._task.add_done_callback(tasks.discard)

    def abandon(self) -> None:
        """The client is gone."""
        if self._task is not None:
            # Behind the task's first step: one that never began couldn't clean up.
            self._connection.loop.call_soon(self._task.cancel)

    def reply(self, status: int, headers: bytes, payload: bytes, *, close: bool = False) -> None:
        """Write the whole reply at once; ``headers`` are lines that end in CRLF. With ``close`` it is the last one.

        Two system calls would cost as much as the rest of it, and wake the client for half an answer.
        """
        connection, transport = self._connection, self._connection.transport
        self.response_started = self.response_complete = True
        is_last = close or not self.keep_alive
        if not transport.is_closing():
            transport.write(
                b"%b%b%bcontent-length: %d\r\nx-request-id: %b\r\n%b\r\n%b"
                % (
                    STATUS_LINE[status],
                    connection.default_headers(),
                    headers,
                    len(payload),
                    self.request_id.encode("ascii"),
                    b"connection: close\r\n" if is_last else b"",
                    payload,
                )
            )
            if is_last:
                transport.close()
        connection.on_response_complete()
