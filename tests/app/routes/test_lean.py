"""The lean route's handler as an ASGI callable: what real sockets can't bring about at will."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from pydantic import ValidationError

from app.errors import NotReady, Overloaded
from app.logs import configure_logging
from app.routes.lean import Answer, LeanHandler
from app.schemas import IntentListRequest, IntentRequest
from app.stages import Stages

pytestmark = pytest.mark.anyio

BODY = b'{"query": "red shoes"}'
Answering = Callable[[IntentRequest, float], Awaitable[Answer]]


class FakeTransport:
    def __init__(self) -> None:
        self.is_closed = False

    def is_closing(self) -> bool:
        return self.is_closed


class FakeConnection:
    """What the protocol puts into the scope: it is told who wants to know that the client left."""

    def __init__(self) -> None:
        self.on_disconnect: Callable[[], object] | None = None
        self.transport = FakeTransport()

    def lose(self) -> None:
        self.transport.is_closed = True
        if self.on_disconnect is not None:
            self.on_disconnect()


class Exchange:
    """One request to the handler, and all that it sent and reported."""

    def __init__(
        self,
        answer: Answering,
        *pieces: bytes,
        headers: tuple[tuple[bytes, bytes], ...] = (),
        log_queries: bool = False,
        read_at: float | None = None,
    ) -> None:
        self.connection = FakeConnection()
        self.sent: list[Any] = []
        self.observed: list[dict[str, Any]] = []
        self.pieces_read = 0
        self.is_draining = False
        self._pieces = pieces or (BODY,)
        self._handler = LeanHandler(
            "/v1/intent",
            IntentRequest,
            answer,
            max_body_bytes=100,
            observe=lambda **seen: self.observed.append(seen),
            is_draining=lambda: self.is_draining,
            log_queries=log_queries,
        )
        self._scope: dict[str, Any] = {
            "type": "http",
            "method": "POST",
            "headers": list(headers),
            "query_intent.connection": self.connection,
        }
        if read_at is not None:
            self._scope["query_intent.read_at"] = read_at

    async def run(self) -> Exchange:
        await self._handler(self._scope, self._receive, self._send)
        return self

    async def _receive(self) -> Any:
        if self.pieces_read == len(self._pieces):
            return {"type": "http.disconnect"}
        self.pieces_read += 1
        more = self.pieces_read < len(self._pieces)
        return {"type": "http.request", "body": self._pieces[self.pieces_read - 1], "more_body": more}

    async def _send(self, message: Any) -> None:
        self.sent.append(message)

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def headers(self) -> dict[bytes, bytes]:
        return dict(self.sent[0]["headers"])

    @property
    def document(self) -> Any:
        return json.loads(self.sent[1]["body"])


async def echo(request: IntentRequest, waited_s: float) -> Answer:
    return Answer({"query": request.query}, Stages(0.001, 0.002, 0.003), "model")


async def never(request: IntentRequest, waited_s: float) -> Answer:
    await asyncio.get_running_loop().create_future()
    raise AssertionError("unreachable")


def raising(error: Exception) -> Answering:
    async def fail(request: IntentRequest, waited_s: float) -> Answer:
        raise error

    return fail


async def turn_loop() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_an_answer_is_sent_with_its_stages_and_observed_once() -> None:
    exchange = await Exchange(echo).run()

    assert (exchange.status, exchange.document) == (200, {"query": "red shoes"})
    assert exchange.headers[b"content-type"] == b"application/json"
    assert exchange.headers[b"server-timing"].startswith(
        b"tokenize;dur=1.000, queue;dur=2.000, inference;dur=3.000, total;dur="
    )
    assert b"connection" not in exchange.headers
    (seen,) = exchange.observed
    assert (seen["route"], seen["status"], seen["source"]) == ("/v1/intent", 200, "model")
    assert seen["stages"].total > 0


@pytest.mark.parametrize(("read_at", "waited_s"), [(lambda: time.perf_counter() - 5.0, 5.0), (lambda: None, 0.0)])
async def test_what_a_request_waited_for_the_event_loop_counts(
    read_at: Callable[[], float | None], waited_s: float
) -> None:
    """Its time runs from when it had been read, where the connection says when that was."""
    seen: list[float] = []

    async def answer(request: IntentRequest, waited_s: float) -> Answer:
        seen.append(waited_s)
        return await echo(request, waited_s)

    exchange = await Exchange(answer, read_at=read_at()).run()

    assert waited_s <= seen[0] < waited_s + 1.0
    assert exchange.observed[0]["stages"].total >= seen[0]


async def test_while_draining_a_reply_says_close() -> None:
    exchange = Exchange(echo)
    exchange.is_draining = True

    assert (await exchange.run()).headers[b"connection"] == b"close"


async def test_a_client_that_leaves_cancels_its_answer_and_is_sent_nothing() -> None:
    exchange = Exchange(never)
    running = asyncio.create_task(exchange.run())
    await turn_loop()
    exchange.connection.lose()
    await running

    assert exchange.sent == []
    assert [seen["status"] for seen in exchange.observed] == [499]


async def test_a_client_that_left_before_its_body_was_read_is_sent_nothing() -> None:
    exchange = Exchange(echo)
    exchange.pieces_read = 1
    await exchange.run()

    assert exchange.sent == []
    assert [seen["status"] for seen in exchange.observed] == [499]


async def test_a_client_that_leaves_after_its_answer_cancels_nothing() -> None:
    exchange = await Exchange(echo).run()
    exchange.connection.lose()
    await turn_loop()

    assert exchange.status == 200


async def test_a_request_that_the_server_ends_is_503_and_not_silence() -> None:
    """At the drain's bound the server cancels what still runs; the client is there and waits."""
    exchange = Exchange(never)
    running = asyncio.create_task(exchange.run())
    await turn_loop()
    running.cancel()
    await running

    assert (exchange.status, exchange.document["detail"]) == (503, "the service is stopping")
    assert exchange.headers[b"retry-after"] == b"1"
    assert [seen["status"] for seen in exchange.observed] == [503]


@pytest.mark.parametrize(
    ("error", "status", "after"),
    [
        (Overloaded("busy", retry_after_s=0.0123), 429, (13, b"1")),
        (Overloaded("busy", retry_after_s=1.0001), 429, (1001, b"2")),
        (NotReady("loading", retry_after_s=3), 503, (3000, b"3")),
    ],
)
async def test_when_to_come_back_is_said_in_milliseconds_and_whole_seconds(
    error: Exception, status: int, after: tuple[int, bytes]
) -> None:
    exchange = await Exchange(raising(error)).run()

    assert exchange.status == status
    assert (exchange.document["retry_after_ms"], exchange.headers[b"retry-after"]) == after


@pytest.mark.usefixtures("loggers_as_they_were")
async def test_an_unforeseen_error_says_nothing_of_itself_and_its_query_is_in_no_log(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logging("debug")
    exchange = await Exchange(raising(RuntimeError("can't embed 'red shoes'"))).run()
    logged = capsys.readouterr().err

    assert exchange.status == 500
    assert exchange.document["detail"] == "the error is in the server's log"
    assert "embed" not in json.dumps(exchange.document)
    assert exchange.document["request_id"] in logged
    assert "RuntimeError" in logged
    assert "red shoes" not in logged
    assert logging.getLogger().handlers


async def test_a_body_in_pieces_is_put_together() -> None:
    exchange = await Exchange(echo, *(bytes([byte]) for byte in BODY)).run()

    assert exchange.document == {"query": "red shoes"}


@pytest.mark.parametrize(("size", "status"), [(99, 200), (100, 200), (101, 413)])
async def test_a_body_may_be_as_long_as_the_limit(size: int, status: int) -> None:
    exchange = await Exchange(echo, BODY.ljust(size)).run()

    assert exchange.status == status


async def test_no_more_is_read_than_shows_that_a_body_is_too_long() -> None:
    exchange = await Exchange(echo, *[b" " * 30] * 10).run()

    assert exchange.status == 413
    assert exchange.pieces_read == 4
    assert exchange.headers[b"connection"] == b"close"


async def test_a_body_announced_as_too_long_is_not_read_at_all() -> None:
    exchange = await Exchange(echo, headers=((b"content-length", b"101"),)).run()

    assert (exchange.status, exchange.pieces_read) == (413, 0)


async def test_of_a_body_of_another_type_nothing_is_read() -> None:
    exchange = await Exchange(echo, headers=((b"content-type", b"text/csv"),)).run()

    assert (exchange.status, exchange.pieces_read) == (415, 0)
    assert exchange.headers[b"connection"] == b"close"


async def test_a_list_of_nothing_but_bad_items_is_given_up_at_the_first() -> None:
    """An error for each of half a million items would hold up every other query for seconds."""
    with pytest.raises(ValidationError) as refusal:
        IntentListRequest.model_validate_json(b'{"queries": [1, 2, 3]}')
    assert [error["loc"] for error in refusal.value.errors()] == [("queries", 0)]


@pytest.mark.parametrize("log_queries", [False, True])
async def test_the_request_that_the_service_failed_on_is_logged_only_when_asked_for(
    log_queries: bool, caplog: pytest.LogCaptureFixture
) -> None:
    exchange = Exchange(raising(RuntimeError("boom")), b'{"query": "my secret"}', log_queries=log_queries)
    await exchange.run()
    logged = [record.__dict__.get("request") for record in caplog.records if "request" in record.__dict__]
    assert exchange.status == 500
    assert [each["query"] for each in logged if each] == (["my secret"] if log_queries else [])
