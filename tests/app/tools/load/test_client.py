"""Requests over real connections: whatever the server does with one, it has exactly one outcome."""

from __future__ import annotations

import asyncio
import time
from array import array
from collections import Counter
from collections.abc import Awaitable, Callable

import uvloop

from app.tools.load.client import ConnectionPool
from app.tools.load.outcomes import CLOSED, MALFORMED, MAX_SOURCES, RESET, TIMEOUT, UNSENT, Outcomes
from app.tools.load.target import Target
from tests.app.tools.load.tiny_server import Request, Serve, TinyServer, http_reply


def exchange(server: TinyServer, count: int, *, connections: int = 1, timeout_s: float = 5.0) -> Outcomes:
    """``count`` requests, all intended now."""

    async def run() -> Outcomes:
        outcomes = Outcomes(array("q", [time.monotonic_ns()] * count))
        target = Target.parse(server.url)
        pool = ConnectionPool(target, [target.encode(b"{}")] * count, outcomes, size=connections, timeout_s=timeout_s)
        try:
            await pool.open()
            for number in range(count):
                pool.send(number)
            await pool.drain()
        finally:
            await pool.aclose()
        return outcomes

    return uvloop.run(run())


def sources(outcomes: Outcomes) -> list[bytes]:
    return [outcomes.source_names[place] for place in outcomes.source]


def first(behaviour: Callable[[Request], None]) -> Callable[[Request], Awaitable[None]]:
    """Treats the first request this way and all others well."""

    async def behave(request: Request) -> None:
        behaviour(request) if request.number == 0 else request.reply()

    return behave


async def say_nothing(_request: Request) -> None:
    """A server that reads and never answers."""


def test_a_connection_is_kept_for_the_next_request(serve: Serve) -> None:
    async def behave(request: Request) -> None:
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
    chunked = b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n{"sour\r\nc\r\nce":"cache"}\r\n0\r\n\r\n'
    outcomes = exchange(serve(first(lambda request: request.send(chunked))), 2)
    assert outcomes.status.tolist() == [200, 200]
    assert sources(outcomes) == [b"cache", b"model"]


def test_a_reply_may_arrive_byte_by_byte(serve: Serve) -> None:
    reply = http_reply(200, b'{"source": "cache"}', "server-timing: total;dur=1.5\r\n")

    async def trickle(request: Request) -> None:
        for byte in reply:
            request.send(bytes([byte]))
            await asyncio.sleep(0)

    outcomes = exchange(serve(trickle), 2)
    assert outcomes.status.tolist() == [200, 200]
    assert outcomes.server_timings == [b"total;dur=1.5"] * 2
    assert sources(outcomes) == [b"cache"] * 2


def test_an_interim_reply_is_not_the_answer(serve: Serve) -> None:
    hints = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    outcomes = exchange(serve(first(lambda request: request.send(hints + http_reply(429, b"{}", "")))), 2)
    assert outcomes.status.tolist() == [429, 200]


def test_after_a_reply_that_closes_a_new_connection_is_made(serve: Serve) -> None:
    server = serve(first(lambda request: request.reply(headers="Connection: close\r\n")))
    assert exchange(server, 2).status.tolist() == [200, 200]
    assert server.connections == 2


def test_a_connection_closed_before_its_reply_is_an_error_and_replaced(serve: Serve) -> None:
    def break_off(request: Request) -> None:
        request.send(b"HTTP/1.1 200 OK\r\nContent-")
        request.hang_up()

    server = serve(first(break_off))
    assert exchange(server, 2).status.tolist() == [CLOSED, 200]
    assert server.connections == 2


def test_a_reset_is_told_from_a_close(serve: Serve) -> None:
    assert exchange(serve(first(lambda request: request.reset())), 2).status.tolist() == [RESET, 200]


def test_a_server_that_hangs_up_on_everybody_is_not_hammered(serve: Serve) -> None:
    async def hang_up(request: Request) -> None:
        request.hang_up()

    server = serve(hang_up)
    outcomes = exchange(server, 500, timeout_s=0.3)
    assert set(outcomes.status) == {CLOSED, UNSENT}
    assert server.connections < 10


def test_what_is_no_http_is_malformed(serve: Serve) -> None:
    server = serve(first(lambda request: request.send(b"SSH-2.0-x\r\n")))
    assert exchange(server, 2).status.tolist() == [MALFORMED, 200]


def test_a_second_reply_to_one_request_counts_for_nothing(serve: Serve) -> None:
    def reply_twice(request: Request) -> None:
        request.reply()
        request.reply(408)

    outcomes = exchange(serve(first(reply_twice)), 1)
    assert outcomes.status.tolist() == [200]
    assert (outcomes.answered, outcomes.failed) == (1, 0)


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
    assert sources(exchange(serve(first(lambda request: request.reply(body=body))), 1)) == [b"override"]


def test_none_is_lost_among_all_that_can_happen(serve: Serve) -> None:
    async def misbehave(request: Request) -> None:
        turn = request.number % 8
        if turn < 4:
            request.reply((200, 429, 503, 504)[turn])
        elif turn < 7:
            (request.hang_up, request.reset, lambda: request.send(b"?"))[turn - 4]()

    outcomes = exchange(serve(misbehave), 80, connections=20, timeout_s=0.5)
    found = Counter(outcomes.status)
    assert set(found) == {200, 429, 503, 504, CLOSED, RESET, MALFORMED, TIMEOUT}
    assert found.total() == outcomes.answered + outcomes.failed == 80
    assert all(ended_ns > 0 for ended_ns in outcomes.ended_ns)
    assert all(sent_ns > 0 for sent_ns in outcomes.sent_ns)


def test_the_time_of_sending_is_noted_apart_from_the_intended_one(serve: Serve) -> None:
    async def take_time(request: Request) -> None:
        await asyncio.sleep(0.05)
        request.reply()

    outcomes = exchange(serve(take_time), 3)
    first_sent, _, last_sent = outcomes.sent_ns
    assert first_sent - outcomes.intended_ns[0] < 50_000_000
    assert last_sent - outcomes.intended_ns[2] >= 100_000_000


def test_more_sources_than_anybody_reads_are_counted_together() -> None:
    outcomes = Outcomes(array("q", [0] * 1000))
    for number in range(1000):
        outcomes.note_source(number, b"source %d" % number)
    assert len(outcomes.source_names) == 1 + MAX_SOURCES + 1
    assert Counter(sources(outcomes))[b"(more)"] == 1000 - MAX_SOURCES
    assert Counter(sources(outcomes))[b"source 0"] == 1
