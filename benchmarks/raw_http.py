"""HTTP/1.1 by hand: what no client library would send, and every reply to it, interim ones and early ones too."""

from __future__ import annotations

import contextlib
import json
import select
import socket
import time
from types import TracebackType
from typing import Any, NamedTuple

TIMEOUT_S = 30.0


class Reply(NamedTuple):
    """``headers`` has lower-case names."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Closed(Exception):
    """The server closed the connection instead of answering."""


class Connection:
    """One connection to ``address`` (host, port). Nothing here waits for longer than ``timeout_s``."""

    def __init__(self, address: tuple[str, int], *, timeout_s: float = TIMEOUT_S) -> None:
        self.socket = socket.create_connection(address, timeout=timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._replies = self.socket.makefile("rb")

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._replies.close()
        self.socket.close()

    def send(self, data: bytes) -> None:
        """Send, as far as the server listens: it may have answered and closed before it has read everything."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.socket.sendall(data)

    def trickle(self, piece: bytes, *, every_s: float = 0.05, for_s: float = TIMEOUT_S) -> None:
        """Send ``piece`` again and again until the server answers or closes."""
        deadline = time.monotonic() + for_s
        while time.monotonic() < deadline and not self.has_news(every_s):
            self.send(piece)

    def has_news(self, wait_s: float = 0.0) -> bool:
        """Whether there is something to read, the end of the connection included."""
        return bool(select.select([self.socket], [], [], wait_s)[0])

    def reply(self) -> Reply:
        """The next reply. Raises ``Closed`` when there is none."""
        try:
            return self._read_reply()
        except ConnectionResetError:
            raise Closed from None

    def request(self, data: bytes) -> Reply:
        self.send(data)
        return self.reply()

    def is_closed_by_server(self) -> bool:
        """Waits for the server's next word and says whether that was the end of the connection."""
        try:
            return self._replies.read(1) == b""
        except ConnectionResetError:
            return True

    def _read_reply(self) -> Reply:
        line = self._replies.readline()
        if not line:
            raise Closed
        status = int(line.split(b" ", 2)[1])
        headers: dict[str, str] = {}
        while (line := self._replies.readline()) not in (b"\r\n", b""):
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.strip().lower()] = value.strip()
        if headers.get("transfer-encoding") == "chunked":
            return Reply(status, headers, self._read_chunks())
        return Reply(status, headers, self._replies.read(int(headers.get("content-length", "0"))))

    def _read_chunks(self) -> bytes:
        body = b""
        while size := int(self._replies.readline(), 16):
            body += self._replies.read(size)
            self._replies.readline()
        self._replies.readline()
        return body


def request(method: str, path: str, *headers: str, body: bytes = b"", host: str = "test") -> bytes:
    """The bytes of a request with these headers and no others but ``Host``."""
    return "\r\n".join([f"{method} {path} HTTP/1.1", f"Host: {host}", *headers, "", ""]).encode("latin-1") + body


def post(path: str, document: Any, *headers: str) -> bytes:
    """A request with a JSON body; ``document`` may be bytes, which are sent as they are."""
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return request("POST", path, "Content-Type: application/json", f"Content-Length: {len(body)}", *headers, body=body)


def chunked(path: str, *chunks: bytes, is_complete: bool = True) -> bytes:
    """A POST whose body comes in chunks; an incomplete one never says that it ends."""
    body = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
    ending = b"0\r\n\r\n" if is_complete else b""
    return request("POST", path, "Content-Type: application/json", "Transfer-Encoding: chunked", body=body + ending)
