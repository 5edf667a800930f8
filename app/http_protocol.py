"""The HTTP/1.1 connection: uvicorn's, plus what it lacks against slow, silent and too many clients.

A request starts once its body is here, so that no handler waits for a client that sends byte by byte; bodies too large
to hold back start at once and are streamed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, MutableMapping
from typing import Any

import orjson
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from app.error_handlers import problem_document, problem_headers
from app.errors import BodyTooSlow, MalformedRequest, NotReady, PayloadTooLarge, QueryIntentError
from app.request_id import request_id_of

MAX_HEADER_BYTES = 32_768
# What Java's HttpClient and curl --http2 put into a request to a plain http URL.
HTTP2_OFFER = b"\r\nUpgrade: h2c\r\n"


class OneWrite:
    """Stands in for the transport of one response: holds its head back until the body comes, and writes both at once.

    A second system call costs as much as the rest of the reply, and wakes the client for half an answer. What is
    written after the client has left is dropped: uvicorn tells only the latest of a connection's requests that it has.
    """

    __slots__ = ("_held", "_started", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._held = b""
        self._started = False

    def write(self, data: bytes) -> None:
        if self._started:
            held, self._held = self._held, b""
            if not self._transport.is_closing():
                self._transport.write(held + data)
        else:
            self._started = True
            self._held = data

    def close(self) -> None:
        if self._held and not self._transport.is_closing():
            self._transport.write(self._held)
        self._transport.close()

    def is_closing(self) -> bool:
        return self._transport.is_closing()


class ConnectionProtocol(HttpToolsProtocol):
    """One client connection. Make a subclass with the limits by ``limited``."""

    max_connections: int
    read_timeout_s: float
    observe: Callable[[int], object]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Called when the client closes while its answer is being computed; the handler sets and clears it.
        self.on_disconnect: Callable[[], object] | None = None
        # Since when a request has been arriving; None between requests.
        self.reading_since: float | None = None
        self._held_back: tuple[RequestResponseCycle, Any] | None = None
        # Of headers that are not complete yet: the chunk in which they begin, behind the rest of an earlier request
        # perhaps, what was read since, and the chunk that is being read.
        self._first_chunk_bytes = 0
        self._header_bytes = 0
        self._chunk_bytes = 0
        self._headers_complete = True
        # What ends the connection once the requests that arrived before it have their answers.
        self._refusal: QueryIntentError | None = None
        # Since when written bytes have been waiting for the client to read; None while there are none.
        self._unread_since: float | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)  # type: ignore[arg-type]
        if len(self.connections) > self.max_connections:
            self._refuse(NotReady(f"{self.max_connections} connections are open, which is this worker's limit"))
            return
        # uvicorn arms this after a response only: a connection that never says anything would stay for ever.
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def connection_lost(self, exc: Exception | None) -> None:
        self._unset_keepalive_if_required()
        self._held_back = None
        super().connection_lost(exc)
        if self.on_disconnect is not None:
            self.on_disconnect()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unread_since = None

    def data_received(self, data: bytes) -> None:
        if self.parser is None or self._refusal is not None or self.transport.is_closing():
            return
        if self.reading_since is None:
            self.reading_since = self.loop.time()
            if (offer := data.find(HTTP2_OFFER, 0, MAX_HEADER_BYTES)) >= 0:
                # It is declined by answering in HTTP/1.1; llhttp would stop before the body and lose it.
                data = data[:offer] + data[offer + len(HTTP2_OFFER) - 2 :]
        self._chunk_bytes = len(data)
        scope = self.scope
        super().data_received(data)
        # Not in the chunk in which they begin: the rest of an earlier request may be in it.
        if not self._headers_complete and self.scope is scope:
            self._header_bytes += len(data)
            if self._header_bytes > MAX_HEADER_BYTES:
                self._refuse_in_turn(_too_long_headers())

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self.reading_since is None:  # a pipelined request that came with the end of the one before
            self.reading_since = self.loop.time()
        self._first_chunk_bytes, self._header_bytes, self._headers_complete = self._chunk_bytes, 0, False
        self.scope["query_intent.connection"] = self  # type: ignore[typeddict-unknown-key]

    def on_headers_complete(self) -> None:
        self._headers_complete = True
        at_most = self._first_chunk_bytes + self._header_bytes + self._chunk_bytes
        if at_most > MAX_HEADER_BYTES and self._size_of_headers() > MAX_HEADER_BYTES:
            self._refuse_in_turn(_too_long_headers())
            raise PayloadTooLarge  # stops the parser
        super().on_headers_complete()
        # A "100 Continue" must not wait for the answer, and a reply to HEAD has no body that would release its head.
        if not self.expect_100_continue and self.scope["method"] != "HEAD":
            self.cycle.transport = OneWrite(self.transport)  # type: ignore[assignment]

    def on_response_complete(self) -> None:
        if self.reading_since is not None:  # nothing of the next request was read meanwhile
            self.reading_since = self.loop.time()
        super().on_response_complete()
        if self._refusal is not None:
            self._refuse_in_turn(self._refusal)

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        if self._held_back is not None and len(self._held_back[0].body) > HIGH_WATER_LIMIT:
            self._start_held_back()

    def on_message_complete(self) -> None:
        # From here on what a request waits for is this service, a busy event loop before its handler runs included.
        self.scope["query_intent.read_at"] = time.perf_counter()  # type: ignore[typeddict-unknown-key]
        super().on_message_complete()
        self.reading_since = None
        self._start_held_back()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        if cycle.more_body and not cycle.waiting_for_100_continue and not _is_large(cycle):
            self._held_back = cycle, app
        else:
            super()._start_asgi_task(cycle, app)

    def _start_held_back(self) -> None:
        if self._held_back is not None:
            (cycle, app), self._held_back = self._held_back, None
            super()._start_asgi_task(cycle, app)

    def sweep(self, now: float) -> None:
        """End a connection that has been sending a request, or leaving an answer unread, for longer than allowed.

        ``now`` is the loop's time. Looking now and then costs requests nothing, as a timer for each would.
        """
        self._abort_if_unread(now)
        self._refuse_if_slow(now)

    def _abort_if_unread(self, now: float) -> None:
        if not self.transport.get_write_buffer_size():
            self._unread_since = None
        elif self._unread_since is None:
            self._unread_since = now
        elif now - self._unread_since > self.read_timeout_s:
            self.transport.abort()  # closing would wait for the client to read

    def _refuse_if_slow(self, now: float) -> None:
        if self.reading_since is None or now - self.reading_since <= self.read_timeout_s:
            return
        if not self._is_answering():  # else a refusal would be taken for the answer that is to come
            self._refuse(BodyTooSlow(f"the request did not arrive within {self.read_timeout_s:g} s"))

    def send_400_response(self, msg: str) -> None:
        error = MalformedRequest("the bytes that came are not an HTTP/1.1 request; the connection is closed")
        self._refuse_in_turn(self._refusal or error)

    def _unsupported_upgrade_warning(self) -> None:
        """An offer that is not taken up is nothing to warn of: it would be a line in the log for each request."""

    def _is_answering(self) -> bool:
        """Whether a request that has arrived is without its answer."""
        cycle = self.cycle
        return bool(self.pipeline) or (cycle is not None and not cycle.more_body and not cycle.response_complete)

    def _scope_that_came(self) -> MutableMapping[str, Any] | None:
        """Of the request that is arriving, if one is: the scope of an earlier one stays until the next begins."""
        is_answered = self.cycle is not None and self.cycle.scope is self.scope and not self.cycle.more_body
        return None if is_answered else self.scope  # type: ignore[return-value]

    def _size_of_headers(self) -> int:
        return len(self.url) + sum(len(name) + len(value) for name, value in self.headers)

    def _refuse_in_turn(self, error: QueryIntentError) -> None:
        """Read nothing more, and refuse once what arrived before has its answers: they may be in the same packet."""
        self._refusal = error
        self.reading_since = None
        if not self._is_answering():
            self._refuse(error)

    def _refuse(self, error: QueryIntentError) -> None:
        """Answer without the application and close: there is no request that it could be given."""
        self._held_back = None
        self.reading_since = None
        if self.transport.is_closing():
            return
        if self.cycle is None or not self.cycle.response_started or self.cycle.response_complete:
            request_id = request_id_of(self._scope_that_came() or {"headers": []})
            document = problem_document(error, request_id=request_id)
            body = orjson.dumps(document)
            headers = [
                *problem_headers(document),
                (b"content-length", b"%d" % len(body)),
                (b"x-request-id", request_id.encode("ascii")),
                (b"connection", b"close"),
            ]
            head = STATUS_LINE[document["status"]] + b"".join(b"%b: %b\r\n" % header for header in headers)
            self.transport.write(head + b"\r\n" + body)
            self.observe(document["status"])
        self.transport.close()


def _too_long_headers() -> PayloadTooLarge:
    return PayloadTooLarge(f"headers of more than {MAX_HEADER_BYTES} bytes")


def limited(
    *, max_connections: int, read_timeout_s: float, observe: Callable[[int], object] = lambda status: None
) -> type[ConnectionProtocol]:
    """The protocol class that uvicorn makes connections of. ``observe`` is told the status of each refusal."""
    members = {
        "max_connections": max_connections,
        "read_timeout_s": read_timeout_s,
        "observe": staticmethod(observe),
    }
    return type("LimitedConnectionProtocol", (ConnectionProtocol,), members)


def _is_large(cycle: RequestResponseCycle) -> bool:
    """Whether the announced body is more than uvicorn buffers, so that holding back would wait for ever."""
    for name, value in cycle.scope["headers"]:
        if name == b"content-length":
            return value.isdigit() and int(value) > HIGH_WATER_LIMIT
    return False
