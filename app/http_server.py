"""uvicorn's server as both ports run it: stopped by its owner instead of by signals, and with an eye on connections."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Iterator
from typing import cast

import uvicorn

from app.accepting import Acceptor, Compare
from app.http_protocol import ConnectionProtocol

logger = logging.getLogger(__name__)

SWEEP_S = 1.0
RETIRE_LOOK_S = 0.05
# For the refusals of what was cancelled to be written, before the engine closes and the loop stands still for that.
REFUSE_S = 1.0


class HttpServer(uvicorn.Server):
    """Its configuration's ``http`` should be a class made by ``limited``; the sweep sees to no other connections.

    ``patience_s`` is what requests get to finish once it stops accepting, in place of uvicorn's own
    ``timeout_graceful_shutdown``.
    """

    def __init__(
        self, config: uvicorn.Config, *, compare: Compare = lambda own: own, patience_s: float | None = None
    ) -> None:
        super().__init__(config)
        self._acceptors: list[Acceptor] = []
        self._compare = compare
        self._patience_s = patience_s

    @property
    def connections(self) -> int:
        return len(self.server_state.connections)

    @property
    def is_accepting(self) -> bool:
        return any(acceptor.is_open for acceptor in self._acceptors)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        sweeper = asyncio.get_running_loop().create_task(self._sweep_task())
        try:
            await super().serve(sockets)
        finally:
            sweeper.cancel()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup([])
        self._acceptors = [
            Acceptor(listening, self._make_protocol, connections=lambda: self.connections, compare=self._compare)
            for listening in sockets or ()
        ]
        self.servers = cast(list[asyncio.Server], self._acceptors)  # for its shutdown

    def _make_protocol(self) -> asyncio.Protocol:
        return self.config.http_protocol_class(  # type: ignore[call-arg]
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )

    async def retire(self) -> None:
        """Accept no connection more, and wait until the last one has ended by itself."""
        while not self.started or self.is_accepting or self.connections:
            if self.started:
                await self._stop_accepting()
            await asyncio.sleep(RETIRE_LOOK_S)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._stop_accepting()  # or what was accepted in this turn of the loop would be shut down by nobody
        await super().shutdown(sockets)

    async def _wait_tasks_to_complete(self) -> None:
        try:
            await asyncio.wait_for(super()._wait_tasks_to_complete(), self._patience_s)
        except asyncio.TimeoutError:
            await self._cancel_tasks()

    async def _cancel_tasks(self) -> None:
        tasks = list(self.server_state.tasks)
        if tasks:
            logger.warning("%d requests were still running when the server's patience was up", len(tasks))
            await asyncio.sleep(0)  # one that came in this turn has not begun, and couldn't answer if it never did
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=REFUSE_S)

    async def _stop_accepting(self) -> None:
        for acceptor in self._acceptors:
            acceptor.close()
            await acceptor.wait_closed()

    async def _sweep_task(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(SWEEP_S)
            for connection in list(self.server_state.connections):
                if isinstance(connection, ConnectionProtocol):
                    connection.sweep(loop.time())
