"""uvicorn's server as both ports run it: stopped by its owner instead of by signals, and with an eye on connections."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator

import uvicorn

from app.http_protocol import ConnectionProtocol

SWEEP_S = 1.0
RETIRE_LOOK_S = 0.05


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

    async def retire(self) -> None:
        """Accept no connection more, and wait until the last one has ended by itself."""
        is_accepting = True
        while is_accepting or self.server_state.connections:
            if is_accepting and self.started:
                for server in self.servers:
                    server.close()
                is_accepting = False
            # What was accepted in this turn of the loop is among the connections in the next one only.
            await asyncio.sleep(RETIRE_LOOK_S)

    async def _sweep_task(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(SWEEP_S)
            for connection in list(self.server_state.connections):
                if isinstance(connection, ConnectionProtocol):
                    connection.sweep(loop.time())
