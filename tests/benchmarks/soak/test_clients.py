"""How the clients of a soak see each way in which a request can end, on a real socket."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from socket import SO_LINGER, SOL_SOCKET

import pytest

from benchmarks.raw_http import post
from benchmarks.soak.clients import STATUS_LEFT, STATUS_LOST, Clients
from benchmarks.soak.mix import BAD, Asked

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
PATIENCE_S = 20.0


class Ends:
    def __init__(self) -> None:
        self.seen: list[tuple[int, bytes]] = []
        self._news = asyncio.Event()

    def __call__(self, asked: Asked, status: int, body: bytes) -> None:
        self.seen.append((status, body))
        self._news.set()

    async def wait(self, count: int) -> list[tuple[int, bytes]]:
        while len(self.seen) < count:
            self._news.clear()
            await asyncio.wait_for(self._news.wait(), PATIENCE_S)
        return self.seen


@asynccontextmanager
async def clients_of(serve: Serve, *, size: int = 2) -> AsyncIterator[tuple[Clients, Ends]]:
    ends = Ends()
    connections: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        connections.add(task)
        try:
            await serve(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    clients = Clients(server.sockets[0].getsockname(), size=size, on_end=ends)
    try:
        yield clients, ends
    finally:
        clients.close()
        server.close()
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)


async def body_of(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    return await reader.readexactly(int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0]))


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        body = await body_of(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def crash(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await body_of(reader)
    writer.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def ask(text: str, leaves_after_s: float | None = None) -> Asked:
    return Asked("patient", post("/", text), (text,), leaves_after_s=leaves_after_s)


@pytest.mark.anyio
async def test_each_request_gets_its_own_reply_over_fewer_connections() -> None:
    async with clients_of(echo) as (clients, ends):
        for number in range(20):
            clients.send(ask(str(number)))
        seen = await ends.wait(20)
        assert sorted(int(body[1:-1]) for _, body in seen) == list(range(20))
        assert {status for status, _ in seen} == {200}
        assert clients.unfinished == 0


@pytest.mark.anyio
async def test_a_client_that_leaves_ends_its_request_itself() -> None:
    async with clients_of(silence) as (clients, ends):
        clients.send(ask("a", leaves_after_s=0.0))
        assert await ends.wait(1) == [(STATUS_LEFT, b"")]


@pytest.mark.anyio
async def test_a_broken_connection_is_a_lost_request_and_the_next_has_another() -> None:
    async with clients_of(crash, size=1) as (clients, ends):
        clients.send(ask("a"))
        clients.send(ask("b"))
        assert await ends.wait(2) == [(STATUS_LOST, b"")] * 2
        assert clients.unfinished == 0


@pytest.mark.anyio
async def test_bad_input_needs_no_free_connection() -> None:
    async with clients_of(silence, size=1) as (clients, ends):
        clients.send(ask("a"))
        clients.send(Asked("bad", BAD[0].request, bad=BAD[0], leaves_after_s=0.0))
        assert await ends.wait(1) == [(STATUS_LEFT, b"")]
        assert clients.unfinished == 1


@pytest.mark.anyio
async def test_nobody_there_is_a_lost_request() -> None:
    ends = Ends()
    server = await asyncio.start_server(silence, "127.0.0.1", 0)
    address = server.sockets[0].getsockname()
    server.close()
    await server.wait_closed()
    Clients(address, size=1, on_end=ends).send(ask("a"))
    assert await ends.wait(1) == [(STATUS_LOST, b"")]
