from __future__ import annotations

import asyncio
import time
from array import array
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import uvloop

from app.tools.http_client import CLOSED, MALFORMED, TIMEOUT, UNSENT, ConnectionPool, Outcomes, Target

Serve = Callable[..., Any]  # the fixture of conftest.py


def exchange(server: Any, count: int, *, connections: int = 1, timeout_s: float = 5.0) -> Outcomes:
    """``count`` requests, all intended now."""

    async def run() -> Outcomes:
        outcomes = Outcomes(array("q", [time.monotonic_ns()] * count))
        target = Target.parse(server.url)
        pool = ConnectionPool(target, [target.encode(b"{}")], outcomes, size=connections, timeout_s=timeout_s)
        try:
            await pool.open()
            for number in range(count):
                pool.send(number)
            await pool.drain()
        finally:
            await pool.aclose()
        return outcomes

    return uvloop.run(run())


def first(behaviour: Callable[[Any], None]) -> Callable[[Any], Awaitable[None]]:
    """Treats the first request this way and all others well."""

    async def behave(request: Any) -> None:
        behaviour(request) if request.number == 0 else request.reply()

    return behave


async def say_nothing(_request: Any) -> None:
    """A server that reads and never answers."""


def test_a_connection_is_kept_for_the_next_request(serve: Serve) -> None:
    async def behave(request: Any) -> None:
        request.reply((200, 429, 503)[request.number])

    server = serve(behave)
    assert exchange(server, 3).status.tolist() == [200, 429, 503]
    assert server.connections == 1


def test_connections_take_turns(serve: Serve) -> None:
    server = serve(first(lambda request: request.reply()))
    outcomes = exchange(server, 4, connections=4)
    assert outcomes.status.tolist() == [200] * 4
    assert server.connections == 4
    assert outcomes.waited_for_connection == 0


def test_a_chunked_reply_is_one_reply(serve: Serve) -> None:
    chunked = b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n12\r\n{"source":"cache"}\r\n0\r\n\r\n'
    outcomes = exchange(serve(first(lambda request: request.send(chunked))), 2)
    assert outcomes.status.tolist() == [200, 200]
    assert outcomes.sources == {b"cache": 1, b"model": 1}


def test_a_reply_may_arrive_byte_by_byte(serve: Serve) -> None:
    reply = b"HTTP/1.1 200 OK\r\nserver-timing: total;dur=1.5\r\nContent-Length: 2\r\n\r\n{}"

    async def trickle(request: Any) -> None:
        for byte in reply:
            request.send(bytes([byte]))
            await asyncio.sleep(0)

    outcomes = exchange(serve(trickle), 2)
    assert outcomes.status.tolist() == [200, 200]
    assert outcomes.server_timings == [b"total;dur=1.5"] * 2


def test_after_a_reply_that_closes_a_new_connection_is_made(serve: Serve) -> None:
    server = serve(first(lambda request: request.reply(headers="Connection: close\r\n")))
    assert exchange(server, 2).status.tolist() == [200, 200]
    assert server.connections == 2


def test_a_connection_closed_before_its_reply_is_an_error_and_replaced(serve: Serve) -> None:
    def break_off(request: Any) -> None:
        request.send(b"HTTP/1.1 200 OK\r\nContent-")
        request.hang_up()

    server = serve(first(break_off))
    assert exchange(server, 2).status.tolist() == [CLOSED, 200]
    assert server.connections == 2


def test_what_is_no_http_is_malformed(serve: Serve) -> None:
    server = serve(first(lambda request: request.send(b"SSH-2.0-x\r\n")))
    assert exchange(server, 2).status.tolist() == [MALFORMED, 200]


def test_a_second_reply_to_one_request_counts_for_nothing(serve: Serve) -> None:
    def reply_twice(request: Any) -> None:
        request.reply()
        request.reply(408)

    outcomes = exchange(serve(first(reply_twice)), 1)
    assert outcomes.status.tolist() == [200]
    assert outcomes.answered == 1


def test_a_request_without_a_reply_is_given_up_at_its_time_limit(serve: Serve) -> None:
    outcomes = exchange(serve(say_nothing), 1, timeout_s=0.05)
    assert outcomes.status.tolist() == [TIMEOUT]
    assert outcomes.ended_ns[0] - outcomes.intended_ns[0] >= 50_000_000


def test_a_request_that_never_found_a_connection_is_unsent(serve: Serve) -> None:
    server = serve(say_nothing)
    outcomes = exchange(server, 3, timeout_s=0.05)
    assert sorted(outcomes.status) == sorted([TIMEOUT, UNSENT, UNSENT])
    assert outcomes.waited_for_connection == 2
    assert len(server.bodies) == 1


def test_words_of_the_query_are_no_source(serve: Serve) -> None:
    body = rb'{"query":"{\"source\":\"x\"}","source":"override"}'
    assert exchange(serve(first(lambda request: request.reply(body=body))), 1).sources == {b"override": 1}


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "localhost:8080", "[::1]:8080"])
def test_the_own_machine_is_loopback(host: str) -> None:
    target = Target.parse(f"http://{host}/v1/intent?a=b")
    assert target.is_loopback
    assert (target.host_header, target.path, target.port) == (host, "/v1/intent?a=b", 8080)


def test_another_machine_is_not_loopback() -> None:
    assert not Target.parse("http://192.0.2.1/").is_loopback


@pytest.mark.parametrize("url", ["https://127.0.0.1/", "127.0.0.1:8080", "http://", "http://127.0.0.1/ä"])
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"URL|percent"):
        Target.parse(url)


def test_a_request_is_complete_http() -> None:
    request = Target.parse("http://127.0.0.1:8080/v1/intent").encode(b'{"query":"lamp"}')
    head, _, body = request.partition(b"\r\n\r\n")
    assert body == b'{"query":"lamp"}'
    assert head.split(b"\r\n") == [
        b"POST /v1/intent HTTP/1.1",
        b"Host: 127.0.0.1:8080",
        b"Content-Type: application/json",
        b"Content-Length: 16",
    ]
