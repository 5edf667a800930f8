"""An exchange writes one whole reply, ends what runs for a client that left, and closes where it should."""

from __future__ import annotations

import asyncio

import pytest

from app.exchange import Exchange, Headers
from app.routes.lean import Answer, LeanHandler
from app.schemas import IntentRequest
from app.stages import Stages
from tests.fakes import FakeConnection

pytestmark = pytest.mark.anyio


def exchange_on(connection: FakeConnection, *, headers: Headers = (), keep_alive: bool = True) -> Exchange:
    handler = LeanHandler(
        "/v1/intent",
        IntentRequest,
        lambda request, waited_s: Answer({}, Stages(), "model"),
        max_body_bytes=100,
        observe=lambda **seen: None,
        closes_connections=lambda: False,
    )
    return Exchange(connection, handler, headers, keep_alive=keep_alive)


@pytest.fixture
async def connection() -> FakeConnection:
    return FakeConnection(asyncio.get_running_loop())


async def test_a_reply_is_whole(connection: FakeConnection) -> None:
    exchange = exchange_on(connection, headers=[(b"x-request-id", b"abc")])
    exchange.reply(200, b"content-type: text/plain\r\n", b"hello")

    assert connection.written == (
        b"HTTP/1.1 200 OK\r\n"
        b"date: today\r\n"
        b"content-type: text/plain\r\n"
        b"content-length: 5\r\n"
        b"x-request-id: abc\r\n"
        b"\r\n"
        b"hello"
    )
    assert connection.responses == 1
    assert exchange.response_complete
    assert not connection.transport.is_closing()


@pytest.mark.parametrize(("keep_alive", "close"), [(False, False), (True, True), (False, True)])
async def test_the_last_reply_of_a_connection_says_so_and_ends_it(
    connection: FakeConnection, keep_alive: bool, close: bool
) -> None:
    exchange_on(connection, keep_alive=keep_alive).reply(200, b"", b"", close=close)

    assert connection.reply.headers["connection"] == "close"
    assert connection.transport.is_closing()


async def test_nothing_is_written_to_a_client_that_left(connection: FakeConnection) -> None:
    connection.transport.close()
    exchange_on(connection).reply(200, b"", b"late")

    assert connection.written == b""
    assert connection.responses == 1


async def test_its_id_is_the_same_however_often_it_is_asked_for(connection: FakeConnection) -> None:
    one, other = exchange_on(connection), exchange_on(connection)
    assert one.request_id == one.request_id != other.request_id


async def test_a_task_has_begun_before_it_is_cancelled(connection: FakeConnection) -> None:
    """A client may leave in the turn in which its request came: what the task holds must still be given back."""
    seen: list[str] = []

    async def answering() -> None:
        seen.append("begun")
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            seen.append("given back")

    exchange = exchange_on(connection)
    exchange.run(answering())
    exchange.abandon()
    for _ in range(5):
        await asyncio.sleep(0)

    assert seen == ["begun", "given back"]
    assert not connection.tasks


async def test_who_leaves_before_anything_runs_leaves_nothing_to_end(connection: FakeConnection) -> None:
    exchange_on(connection).abandon()
    await asyncio.sleep(0)
    assert connection.written == b""


async def test_a_body_in_pieces_is_put_together_in_place(connection: FakeConnection) -> None:
    exchange = exchange_on(connection)
    exchange.receive(b"ab")
    exchange.receive(b"c")
    growing = exchange.body
    exchange.receive(b"de")
    assert bytes(exchange.body) == b"abcde"
    assert exchange.body is growing
