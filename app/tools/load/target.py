"""Where requests go and what they look like: an http URL and a JSON body with a place for the query."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

import orjson

PLACEHOLDER = b"{query}"


@dataclass(frozen=True, slots=True)
class Target:
    """An http URL, resolved once so that no look-up is part of a measurement."""

    url: str
    host_header: str
    path: str
    address: str
    port: int

    @classmethod
    def parse(cls, url: str) -> Target:
        """Raises ValueError for what is no http URL and OSError for a host that does not resolve."""
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname:
            raise ValueError(f"{url!r} is not an http:// URL")
        if not url.isascii() or any(character.isspace() for character in url):
            raise ValueError(f"{url!r} has characters that must be percent-encoded")
        port = parts.port or 80
        found = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        return cls(url, parts.netloc.rpartition("@")[2], path, str(found[0][4][0]), port)

    def encode(self, body: bytes) -> bytes:
        head = (
            f"POST {self.path} HTTP/1.1\r\nHost: {self.host_header}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return head.encode("ascii") + body


class Body:
    """A JSON document in whose strings ``{query}`` stands for the query: ``{"inputs": ["{query}"]}``."""

    def __init__(self, template: str) -> None:
        """Raises ValueError for what is not JSON or has no place for the query."""
        try:
            orjson.loads(template)
        except orjson.JSONDecodeError as error:
            raise ValueError(f"not JSON: {error}") from None
        self._template = template.encode()
        if PLACEHOLDER not in self._template:
            raise ValueError('no string in it has {query}, as in {"query": "{query}"}')

    def fill(self, query: str) -> bytes:
        # Valid JSON can hold the placeholder only inside of a string, so what goes in is a string without its quotes.
        return self._template.replace(PLACEHOLDER, orjson.dumps(query)[1:-1])
