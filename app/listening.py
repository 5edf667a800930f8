"""The sockets of both ports."""

from __future__ import annotations

import socket

from app.errors import StartError

BACKLOG = 2048


def listen(host: str, port: int, setting: str) -> socket.socket:
    """Raises ``StartError`` that names ``setting``, such as OPS_PORT, when the address can't be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except socket.gaierror as error:
        listening.close()
        name = setting.replace("PORT", "HOST")
        raise StartError(f"QUERY_INTENT_{name}={host}: no such address: {error.strerror}") from None
    except OSError as error:
        listening.close()
        raise StartError(f"QUERY_INTENT_{setting}={port}: can't listen on {host}: {error.strerror}") from None
    listening.listen(BACKLOG)
    listening.setblocking(False)
    return listening


def url(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://{host}:{port}"
