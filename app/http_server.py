"""uvicorn's server as both ports run it: stopped by its owner instead of by signals, and with an eye on connections."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator

import uvicorn

from app.http_protocol import ConnectionProtocol

SWEEP_S = 1.0


class HttpServer(uvicorn.Server):
    """Its configuration's ``http`` should be a class made by ``limited``; the sweep sees to no other connections."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        sweeper = asyncio.get_running_loop().create_task(self._sweep_task())
        try:
            await super().serve(sockets)
        finally:
            sweeper.cancel()

    async def _sweep_task(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(SWEEP_S)
            for connection in list(self.server_state.connections):
                if isinstance(connection, ConnectionProtocol):
                    connection.sweep(loop.time())
