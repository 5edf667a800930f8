"""The HTTP/1.1 connection: uvicorn's, plus what it lacks against slow, silent and too many clients.

A request starts once its body is here, so that no handler waits for a client that sends byte by byte; bodies too large
to hold back start at once and are streamed. A POST to one of the ``direct`` routes becomes an exchange
(``app/exchange.py``) and never an ASGI request.
"""

from __future__ import annotations

import asyncio
import time
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any, cast

import httptools
import orjson
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from app.error_handlers import problem_document, problem_headers
from app.errors import BodyTooSlow, MalformedRequest, NotReady, PayloadTooLarge, QueryIntentError
from app.exchange import Exchange, Handles
from app.one_write import OneWrite
from app.request_id import make_request_id

MAX_HEADER_BYTES = 32_768
# What Java's HttpClient and curl --http2 put into a request to a plain http URL.
HTTP2_OFFER = b"\r\nUpgrade: h2c\r\n"


class ConnectionProtocol(HttpToolsProtocol):
    """One client connection. Make a subclass with the limits by ``limited``."""

    max_connections: int
    read_timeout_s: float
    observe: Callable[[int], object]
    direct: Mapping[bytes, Handles]  # by path

    # The header lines of every reply, and uvicorn's list that they were made of: it makes a new one each second.
    _default_lines = b""
    _default_list: list[tuple[bytes, bytes]] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Since when a request has been arriving; None between requests.
        self.reading_since: float | None = None
        # Since when this connection has had nothing to do; None while it has.
        self._idle_since: float | None = None
        self._exchange: Exchange | None = None  # the one that is being answered
        self._is_arriving = False  # a message has begun and not ended
        self._messages = 0  # that have begun
        self._waits_to_write = False  # the client has to read before its next request is looked at
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
        self._idle_since = self.loop.time()  # one that never says anything must not stay for ever

    def connection_lost(self, exc: Exception | None) -> None:
        self._held_back = None
        super().connection_lost(exc)
        if self._exchange is not None:
            self._exchange.abandon()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unread_since = None
        if self._waits_to_write:
            self._waits_to_write = False
            self._go_on()

    def data_received(self, data: bytes) -> None:
        if self.parser is None or self._refusal is not None or self.transport.is_closing():
            return
        self._idle_since = None
        if self.reading_since is None:
            self.reading_since = self.loop.time()
            if (offer := data.find(HTTP2_OFFER, 0, MAX_HEADER_BYTES)) >= 0:
                # It is declined by answering in HTTP/1.1; llhttp would stop before the body and lose it.
                data = data[:offer] + data[offer + len(HTTP2_OFFER) - 2 :]
        self._chunk_bytes = len(data)
        messages = self._messages
        super().data_received(data)
        # Not in the chunk in which they begin: the rest of an earlier request may be in it.
        if not self._headers_complete and self._messages == messages:
            self._header_bytes += len(data)
            if self._header_bytes > MAX_HEADER_BYTES:
                self._refuse_in_turn(_too_long_headers())

    def on_message_begin(self) -> None:
        # What an ASGI request needs beside is made once it is known to be one.
        self.url = b""
        self.headers = []
        self.expect_100_continue = False
        self._messages += 1
        self._is_arriving = True
        self._idle_since = None
        if self.reading_since is None:  # a pipelined request that came with the end of the one before
            self.reading_since = self.loop.time()
        self._first_chunk_bytes, self._header_bytes, self._headers_complete = self._chunk_bytes, 0, False

    def on_headers_complete(self) -> None:
        self._headers_complete = True
        at_most = self._first_chunk_bytes + self._header_bytes + self._chunk_bytes
        if at_most > MAX_HEADER_BYTES and self._size_of_headers() > MAX_HEADER_BYTES:
            self._refuse_in_turn(_too_long_headers())
            raise PayloadTooLarge  # stops the parser
        handler = self._direct_handler()
        if handler is not None:
            self._begin_exchange(handler)
            return
        url, headers, expects = self.url, self.headers, self.expect_100_continue
        super().on_message_begin()
        self.url, self.expect_100_continue = url, expects
        self.headers.extend(headers)  # it is the scope's list
        super().on_headers_complete()
        # A "100 Continue" must not wait for the answer, and a reply to HEAD has no body that would release its head.
        if not self.expect_100_continue and self.scope["method"] != "HEAD":
            self.cycle.transport = OneWrite(self.transport)  # type: ignore[assignment]

    def on_body(self, body: bytes) -> None:
        exchange: object = self.cycle
        if isinstance(exchange, Exchange):
            if exchange.refusal is None:
                exchange.receive(body)
                if len(exchange.body) > exchange.handler.max_body_bytes:
                    self._give_up(
                        exchange, PayloadTooLarge(f"a body of more than {exchange.handler.max_body_bytes} bytes")
                    )
            return
        super().on_body(body)
        if self._held_back is not None and len(self._held_back[0].body) > HIGH_WATER_LIMIT:
            self._start_held_back()

    def on_message_complete(self) -> None:
        self._is_arriving = False
        self.reading_since = None
        exchange: object = self.cycle
        if isinstance(exchange, Exchange):
            exchange.more_body = False
            # From here on what it waits for is this service, a busy event loop included.
            exchange.read_at = time.perf_counter()
            if exchange.in_turn and exchange.refusal is None:
                exchange.handler(exchange)
            return
        super().on_message_complete()
        self._start_held_back()

    def on_response_complete(self) -> None:
        self.server_state.total_requests += 1
        self._exchange = None
        if self.reading_since is not None:  # nothing of the next request was read meanwhile
            self.reading_since = self.loop.time()
        if self.flow.write_paused:
            self.flow.pause_reading()
            self._waits_to_write = True
        elif not self.transport.is_closing():
            self._go_on()

    def _go_on(self) -> None:
        """To the next request that is here, or wait for one."""
        if self.pipeline:
            # Not at once: a client may send a thousand in a packet, each of which would be a call inside the last.
            self.loop.call_soon(self._start_asgi_task, *self.pipeline.pop())
        elif not self._is_arriving:
            self._idle_since = self.loop.time()
        if not self.pipeline:  # else there is enough to do, and to keep
            self.flow.resume_reading()
        if self._refusal is not None:
            self._refuse_in_turn(self._refusal)

    def default_headers(self) -> bytes:
        """Header lines of every reply, such as its date."""
        headers = self.server_state.default_headers
        if headers is not self._default_list:
            kind = type(self)  # for all connections
            kind._default_list = headers
            kind._default_lines = b"".join(b"%b: %b\r\n" % header for header in headers)
        return self._default_lines

    def _direct_handler(self) -> Handles | None:
        if not self.direct or self.parser.get_method() != b"POST":
            return None
        handler = self.direct.get(self.url)
        if handler is None:  # spelled in another way, perhaps
            path = httptools.parse_url(self.url).path or b""
            handler = self.direct.get(urllib.parse.unquote_to_bytes(path))
        return handler

    def _begin_exchange(self, handler: Handles) -> None:
        earlier = self.cycle
        keep_alive = self.parser.get_http_version() != "1.0" and self.parser.should_keep_alive()
        exchange = Exchange(self, handler, self.headers, keep_alive=keep_alive)
        refusal = handler.refusal_of(self.headers)
        self.cycle = cast(RequestResponseCycle, exchange)
        if refusal is not None:
            self._give_up(exchange, refusal)
        if earlier is None or earlier.response_complete:
            self._start_asgi_task(self.cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, self.app))

    def _start_exchange(self, exchange: Exchange) -> None:
        """Its turn has come, though its body may have not."""
        if self.transport.is_closing():
            return
        self._exchange = exchange
        exchange.in_turn = True
        if exchange.refusal is not None or not exchange.more_body:
            exchange.handler(exchange)
        elif self.expect_100_continue:
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _give_up(self, exchange: Exchange, refusal: QueryIntentError) -> None:
        """Read no more of its body: what is left of it can't be told from the next request."""
        exchange.refusal = refusal
        exchange.read_at = time.perf_counter()
        if exchange.in_turn:
            exchange.handler(exchange)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        if self._waits_to_write:
            self.pipeline.append((cycle, app))
        elif isinstance(cycle, Exchange):
            self._start_exchange(cycle)
        elif cycle.more_body and not cycle.waiting_for_100_continue and not _is_large(cycle):
            self._held_back = cycle, app
        else:
            super()._start_asgi_task(cycle, app)

    def _start_held_back(self) -> None:
        if self._held_back is not None:
            (cycle, app), self._held_back = self._held_back, None
            super()._start_asgi_task(cycle, app)

    def sweep(self, now: float) -> None:
        """End a connection that has been silent, sending a request or leaving an answer unread for longer than allowed.

        ``now`` is the loop's time. Looking now and then costs requests nothing, as a timer for each would.
        """
        self._abort_if_unread(now)
        self._refuse_if_slow(now)
        if self._idle_since is not None and now - self._idle_since > self.timeout_keep_alive:
            self.timeout_keep_alive_handler()

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
            request_id = make_request_id(self.headers if self._is_arriving else [])
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
    *,
    max_connections: int,
    read_timeout_s: float,
    observe: Callable[[int], object] = lambda status: None,
    direct: Mapping[str, Handles] | None = None,
) -> type[ConnectionProtocol]:
    """The protocol class that uvicorn makes connections of.

    ``observe`` is told the status of each refusal; ``direct`` answers what is posted to these paths.
    """
    members = {
        "max_connections": max_connections,
        "read_timeout_s": read_timeout_s,
        "observe": staticmethod(observe),
        "direct": {path.encode("ascii"): handler for path, handler in (direct or {}).items()},
    }
    return type("LimitedConnectionProtocol", (ConnectionProtocol,), members)


def _is_large(cycle: RequestResponseCycle) -> bool:
    """Whether the announced body is more than uvicorn buffers, so that holding back would wait for ever."""
    for name, value in cycle.scope["headers"]:
        if name == b"content-length":
            return value.isdigit() and int(value) > HIGH_WATER_LIMIT
    return False
