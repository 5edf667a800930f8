"""The lean route's handler over exchanges: what real sockets can't bring about at will."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from pydantic import ValidationError

from app.errors import NotReady, Overloaded
from app.exchange import Exchange
from app.logs import configure_logging
from app.routes.lean import Answer, LeanHandler
from app.schemas import IntentListRequest, IntentRequest
from app.stages import Stages
from tests.fakes import FakeConnection

pytestmark = pytest.mark.anyio

BODY = b'{"query": "red shoes"}'
Answering = Callable[[IntentRequest, float], Answer | Coroutine[Any, Any, Answer]]


class Asked:
    """One request to the handler, and all that became of it."""

    def __init__(
        self,
        answer: Answering,
        body: bytes = BODY,
        *,
        headers: tuple[tuple[bytes, bytes], ...] = (),
        log_queries: bool = False,
        waited_s: float = 0.0,
    ) -> None:
        self.connection = FakeConnection(asyncio.get_running_loop())
        self.observed: list[dict[str, Any]] = []
        self.begun = 0
        self.closes_connections = False
        handler = LeanHandler(
            "/v1/intent",
            IntentRequest,
            answer,
            max_body_bytes=100,
            begin=self._begin,
            observe=lambda **seen: self.observed.append(seen),
            closes_connections=lambda: self.closes_connections,
            log_queries=log_queries,
        )
        self.exchange = Exchange(self.connection, handler, headers, keep_alive=True)
        self.exchange.refusal = handler.refusal_of(headers)
        self.exchange.body = body
        self.exchange.read_at = time.perf_counter() - waited_s

    def _begin(self) -> None:
        self.begun += 1

    def ask(self) -> Asked:
        self.exchange.handler(self.exchange)
        return self

    def leave(self) -> None:
        self.connection.transport.close()
        self.exchange.abandon()

    @property
    def status(self) -> int:
        return self.connection.reply.status

    @property
    def headers(self) -> dict[str, str]:
        return self.connection.reply.headers

    @property
    def document(self) -> Any:
        return json.loads(self.connection.reply.body)


def echo(request: IntentRequest, waited_s: float) -> Answer:
    return Answer({"query": request.query}, Stages(0.001, 0.002, 0.003), "model", b"cache-status: x; hit\r\n")


async def echo_later(request: IntentRequest, waited_s: float) -> Answer:
    await asyncio.sleep(0)
    return echo(request, waited_s)


async def never(request: IntentRequest, waited_s: float) -> Answer:
    await asyncio.get_running_loop().create_future()
    raise AssertionError("unreachable")


def raising(error: Exception) -> Answering:
    def fail(request: IntentRequest, waited_s: float) -> Answer:
        raise error

    return fail


def raising_later(error: Exception) -> Answering:
    async def fail(request: IntentRequest, waited_s: float) -> Answer:
        await asyncio.sleep(0)
        raise error

    return fail


async def turn_loop() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_an_answer_that_is_there_is_sent_at_once_with_its_stages_and_observed_once() -> None:
    asked = Asked(echo).ask()

    assert (asked.status, asked.document) == (200, {"query": "red shoes"})
    assert asked.headers["content-type"] == "application/json"
    assert asked.headers["cache-status"] == "x; hit"
    assert asked.headers["server-timing"].startswith(
        "tokenize;dur=1.000, queue;dur=2.000, inference;dur=3.000, total;dur="
    )
    assert "connection" not in asked.headers
    (seen,) = asked.observed
    assert (seen["route"], seen["status"], seen["source"]) == ("/v1/intent", 200, "model")
    assert seen["stages"].total > 0
    assert asked.begun == 1
    assert not asked.connection.tasks


async def test_an_answer_that_takes_time_is_the_same_one_later() -> None:
    asked = Asked(echo_later).ask()
    assert asked.connection.written == b""
    await turn_loop()

    assert (asked.status, asked.document) == (200, {"query": "red shoes"})
    assert [(seen["status"], seen["source"]) for seen in asked.observed] == [(200, "model")]
    assert asked.begun == 1
    assert not asked.connection.tasks


async def test_what_a_request_waited_for_the_event_loop_counts() -> None:
    """Its time runs from when it had been read."""
    seen: list[float] = []

    def answer(request: IntentRequest, waited_s: float) -> Answer:
        seen.append(waited_s)
        return echo(request, waited_s)

    asked = Asked(answer, waited_s=5.0).ask()

    assert 5.0 <= seen[0] < 6.0
    assert asked.observed[0]["stages"].total >= seen[0]


async def test_while_draining_a_reply_says_close() -> None:
    asked = Asked(echo)
    asked.closes_connections = True

    assert asked.ask().headers["connection"] == "close"
    assert asked.connection.transport.is_closing()


@pytest.mark.parametrize("turns", [0, 5])
async def test_a_client_that_leaves_cancels_its_answer_and_is_sent_nothing(turns: int) -> None:
    """Also in the very turn in which its request came, before the task has begun."""
    asked = Asked(never).ask()
    for _ in range(turns):
        await asyncio.sleep(0)
    asked.leave()
    await turn_loop()

    assert asked.connection.written == b""
    assert [seen["status"] for seen in asked.observed] == [499]


async def test_a_client_that_leaves_after_its_answer_cancels_nothing() -> None:
    asked = Asked(echo_later).ask()
    await turn_loop()
    asked.leave()
    await turn_loop()

    assert [seen["status"] for seen in asked.observed] == [200]


async def test_a_request_that_the_server_ends_is_503_and_not_silence() -> None:
    """At the drain's bound the server cancels what still runs; the client is there and waits."""
    asked = Asked(never).ask()
    await turn_loop()
    (task,) = asked.connection.tasks
    task.cancel()
    await turn_loop()

    assert (asked.status, asked.document["detail"]) == (503, "the service is stopping")
    assert asked.headers["retry-after"] == "1"
    assert [seen["status"] for seen in asked.observed] == [503]


@pytest.mark.parametrize("fail", [raising, raising_later])
@pytest.mark.parametrize(
    ("error", "status", "after"),
    [
        (Overloaded("busy", retry_after_s=0.0123), 429, (13, "1")),
        (Overloaded("busy", retry_after_s=1.0001), 429, (1001, "2")),
        (NotReady("loading", retry_after_s=3), 503, (3000, "3")),
    ],
)
async def test_when_to_come_back_is_said_in_milliseconds_and_whole_seconds(
    fail: Callable[[Exception], Answering], error: Exception, status: int, after: tuple[int, str]
) -> None:
    asked = Asked(fail(error)).ask()
    await turn_loop()

    assert asked.status == status
    assert (asked.document["retry_after_ms"], asked.headers["retry-after"]) == after
    assert [seen["status"] for seen in asked.observed] == [status]


@pytest.mark.usefixtures("loggers_as_they_were")
async def test_an_unforeseen_error_says_nothing_of_itself_and_its_query_is_in_no_log(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logging("debug")
    asked = Asked(raising(RuntimeError("can't embed 'red shoes'"))).ask()
    logged = capsys.readouterr().err

    assert asked.status == 500
    assert asked.document["detail"] == "the error is in the server's log"
    assert "embed" not in json.dumps(asked.document)
    assert asked.document["request_id"] in logged
    assert asked.headers["x-request-id"] == asked.document["request_id"]
    assert "RuntimeError" in logged
    assert "red shoes" not in logged
    assert logging.getLogger().handlers


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ((b"content-length", b"100"), 200),
        ((b"content-length", b"101"), 413),
        ((b"content-type", b"text/csv"), 415),
        ((b"content-type", b"Application/JSON; charset=utf-8"), 200),
        ((b"content-type", b"application/problem+json"), 200),
    ],
)
async def test_what_headers_refuse_is_answered_without_its_body_on_a_connection_that_ends(
    header: tuple[bytes, bytes], status: int
) -> None:
    asked = Asked(echo, headers=(header,)).ask()

    assert asked.status == status
    assert ("connection" in asked.headers) == (status != 200)
    assert [seen["status"] for seen in asked.observed] == [status]


async def test_a_list_of_nothing_but_bad_items_is_given_up_at_the_first() -> None:
    """An error for each of half a million items would hold up every other query for seconds."""
    with pytest.raises(ValidationError) as refusal:
        IntentListRequest.model_validate_json(b'{"queries": [1, 2, 3]}')
    assert [error["loc"] for error in refusal.value.errors()] == [("queries", 0)]


@pytest.mark.parametrize("log_queries", [False, True])
async def test_the_request_that_the_service_failed_on_is_logged_only_when_asked_for(
    log_queries: bool, caplog: pytest.LogCaptureFixture
) -> None:
    asked = Asked(raising(RuntimeError("boom")), b'{"query": "my secret"}', log_queries=log_queries).ask()
    logged = [record.__dict__.get("request") for record in caplog.records if "request" in record.__dict__]
    assert asked.status == 500
    assert [each["query"] for each in logged if each] == (["my secret"] if log_queries else [])


@pytest.mark.parametrize("digits", ["1" * 20, "0" * 5000 + "14"])
async def test_a_length_of_more_digits_than_a_length_has_is_left_to_the_body(digits: str) -> None:
    assert Asked(echo, headers=((b"content-length", digits.encode()),)).ask().status == 200


async def test_a_body_is_not_kept_beyond_its_reading() -> None:
    asked = Asked(never).ask()
    assert asked.exchange.body == b""
    asked.leave()
    await turn_loop()
