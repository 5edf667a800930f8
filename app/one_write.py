"""How an ASGI reply gets to the client: in one piece."""

from __future__ import annotations

import asyncio


class OneWrite:
    """Stands in for the transport of one response: holds its head back until the body comes, and writes both at once.

    A second system call costs as much as the rest of the reply, and wakes the client for half an answer. What is
    written after the client has left is dropped: uvicorn tells only the latest of a connection's requests that it has.
    """

    __slots__ = ("_held", "_started", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._held = b""
        self._started = False

    def write(self, data: bytes) -> None:
        if self._started:
            held, self._held = self._held, b""
            if not self._transport.is_closing():
                self._transport.write(held + data)
        else:
            self._started = True
            self._held = data

    def close(self) -> None:
        if self._held and not self._transport.is_closing():
            self._transport.write(self._held)
        self._transport.close()

    def is_closing(self) -> bool:
        return self._transport.is_closing()
