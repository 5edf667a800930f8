"""The end of a server: at its bound it cancels what still runs, and whoever waits for that is told."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
import uvicorn

from app.http_protocol import ConnectionProtocol, limited
from app.http_server import HttpServer
from app.routes.lean import Answer, LeanHandler
from app.schemas import IntentRequest
from benchmarks.raw_http import post

pytestmark = pytest.mark.anyio

QUERY = post("/v1/intent", {"query": "red shoes"})


async def never(request: IntentRequest, waited_s: float) -> Answer:
    await asyncio.get_running_loop().create_future()
    raise AssertionError("nobody sets it")


async def nothing(scope: Any, receive: Any, send: Any) -> None:
    raise AssertionError("no request is for this")


async def until(is_so: Callable[[], Any]) -> None:
    while not is_so():  # noqa: ASYNC110 - turns of the loop, not time
        await asyncio.sleep(0)


class JustBeforeTheCancel(set[asyncio.Task[Any]]):
    """The server's tasks. What is left of ``late`` arrives in the turn in which they are cancelled."""

    late: ConnectionProtocol
    rest: bytes

    def __iter__(self) -> Iterator[asyncio.Task[Any]]:
        rest, self.rest = self.rest, b""
        if rest:
            self.late.data_received(rest)
        return super().__iter__()


async def test_a_request_that_comes_with_the_bound_is_told_that_the_service_stops() -> None:
    """One that was cancelled before its first step could not answer."""
    handler = LeanHandler(
        "/v1/intent",
        IntentRequest,
        never,
        max_body_bytes=100,
        observe=lambda **seen: None,
        closes_connections=lambda: True,
    )
    protocol = limited(max_connections=8, read_timeout_s=60, direct={"/v1/intent": handler})
    config = uvicorn.Config(nothing, http=protocol, lifespan="off", log_config=None)
    server = HttpServer(config, patience_s=0.1)
    tasks = server.server_state.tasks = JustBeforeTheCancel()
    tasks.rest = b""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        serving = asyncio.get_running_loop().create_task(server.serve([listening]))
        early = await asyncio.open_connection(*listening.getsockname())
        early[1].write(QUERY)
        await until(lambda: len(tasks))
        known = set(server.server_state.connections)
        late = await asyncio.open_connection(*listening.getsockname())
        late[1].write(QUERY[:-1])
        await until(lambda: server.connections == 2)
        (tasks.late,) = cast(set[ConnectionProtocol], server.server_state.connections - known)
        await until(lambda: tasks.late.reading_since is not None)
        tasks.rest = QUERY[-1:]
        server.should_exit = True

        for reader, writer in (early, late):
            head, _, body = (await asyncio.wait_for(reader.read(), 5)).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 503 ")
            assert json.loads(body)["detail"] == "the service is stopping"
            writer.close()
        await serving
