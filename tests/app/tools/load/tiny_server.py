"""A tiny real HTTP server on a thread of its own, whose every reply the test decides."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Awaitable, Callable


class Request:
    """What the server got, and the ways to answer it."""

    def __init__(self, number: int, body: bytes, writer: asyncio.StreamWriter) -> None:
        self.number = number
        self.body = body
        self._writer = writer

    def reply(self, status: int = 200, body: bytes = b'{"source":"model"}', headers: str = "") -> None:
        self.send(http_reply(status, body, headers))

    def send(self, raw: bytes) -> None:
        self._writer.write(raw)

    def hang_up(self) -> None:
        self._writer.close()

    def reset(self) -> None:
        """Break the connection as a crashed process does."""
        no_lingering = struct.pack("ii", 1, 0)
        self._writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, no_lingering)
        self._writer.transport.abort()


def http_reply(status: int, body: bytes, headers: str) -> bytes:
    return f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body


Behaviour = Callable[[Request], Awaitable[None]]
Serve = Callable[[Behaviour], "TinyServer"]  # the fixture of conftest.py


class TinyServer:
    def __init__(self, behaviour: Behaviour) -> None:
        self.bodies: list[bytes] = []
        self.connections = 0
        self._behaviour = behaviour
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()))
        self._thread.start()
        self._started.wait()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1/intent"

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()

    async def _main(self) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        self._handlers: set[asyncio.Task[None]] = set()
        server = await asyncio.start_server(self._handle, "127.0.0.1", 0)
        self.port: int = server.sockets[0].getsockname()[1]
        self._started.set()
        await self._stopping.wait()
        server.close()
        for handler in self._handlers:
            handler.cancel()
        await asyncio.gather(*self._handlers, return_exceptions=True)

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._handlers.add(task)
        self.connections += 1
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
                while not writer.is_closing():
                    head = await reader.readuntil(b"\r\n\r\n")
                    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
                    self.bodies.append(await reader.readexactly(length))
                    await self._behaviour(Request(len(self.bodies) - 1, self.bodies[-1], writer))
        finally:
            self._handlers.discard(task)
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
