"""Accepting on a real socket: everybody is accepted in the end, and first by the worker that has fewer connections."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
import uvloop

from app import accepting
from app.accepting import AHEAD, Acceptor
from app.listening import listen
from tests.fakes import PATIENCE_S
from tests.pools import turn_until

pytestmark = pytest.mark.anyio
CLIENTS = 40


@pytest.fixture(scope="module")
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": uvloop.new_event_loop}  # as the workers have it


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with listen("127.0.0.1", 0, "PORT") as listening:
        yield listening


@pytest.fixture
def clients(listening: socket.socket) -> Iterator[list[socket.socket]]:
    """They are connected as far as the kernel is concerned, and wait to be accepted."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(socket.create_connection(listening.getsockname())) for _ in range(CLIENTS)]


class Connection(asyncio.Protocol):
    def __init__(self, made: list[asyncio.BaseTransport]) -> None:
        self._made = made

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._made.append(transport)


@contextlib.asynccontextmanager
async def accepting_on(
    listening: socket.socket, compare: Callable[[int], int] = lambda own: own
) -> AsyncIterator[tuple[Acceptor, list[asyncio.BaseTransport]]]:
    made: list[asyncio.BaseTransport] = []
    shared = listening.dup()
    acceptor = Acceptor(shared, lambda: Connection(made), connections=lambda: len(made), compare=compare)
    try:
        yield acceptor, made
    finally:
        acceptor.close()
        await acceptor.wait_closed()
        for transport in made:
            transport.close()
        shared.close()


async def test_all_are_accepted(listening: socket.socket, clients: list[socket.socket]) -> None:
    async with accepting_on(listening) as (_, made):
        await turn_until(lambda: len(made) == CLIENTS)
        peers = {transport.get_extra_info("peername") for transport in made}
        assert peers == {client.getsockname() for client in clients}
        nodelay = {
            transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) for transport in made
        }
        assert nodelay == {1}


async def test_one_that_is_ahead_leaves_them_to_the_others(
    listening: socket.socket, clients: list[socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accepting, "LEAVE_S", PATIENCE_S)
    async with accepting_on(listening, lambda _: 0) as (_, ahead):
        await turn_until(lambda: len(ahead) > AHEAD)
        async with accepting_on(listening) as (_, behind):
            await turn_until(lambda: len(ahead) + len(behind) == CLIENTS)
            assert len(ahead) <= AHEAD + 3


async def test_it_takes_them_after_all_where_no_other_does(
    listening: socket.socket, clients: list[socket.socket]
) -> None:
    async with accepting_on(listening, lambda _: 0) as (_, made):
        await turn_until(lambda: len(made) == CLIENTS)


async def test_without_a_free_file_descriptor_it_tries_again(
    listening: socket.socket,
    clients: list[socket.socket],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(accepting, "NO_ROOM_S", 0.001)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with accepting_on(listening) as (_, made):
        resource.setrlimit(resource.RLIMIT_NOFILE, (clients[-1].fileno() + 1, before[1]))
        try:
            await turn_until(lambda: bool(caplog.records))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
        assert caplog.messages[0] == "can't accept a connection: Too many open files; trying again in 0.001 s"
        await turn_until(lambda: len(made) == CLIENTS)


async def test_a_closed_one_accepts_no_more_and_waits_for_those_that_it_has(
    listening: socket.socket, clients: list[socket.socket]
) -> None:
    async with accepting_on(listening) as (acceptor, made):
        await turn_until(lambda: len(made) > 2)
        acceptor.close()
        await acceptor.wait_closed()
        accepted = len(made)
        assert not acceptor.is_open
        async with accepting_on(listening) as (_, others):
            await turn_until(lambda: len(others) == CLIENTS - accepted)
        assert len(made) == accepted
