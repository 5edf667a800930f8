"""Is the service of this container alive? ``python -m app.healthcheck`` says so by its exit code, 0 or 1.

For ``HEALTHCHECK`` and for ECS. It asks ``/healthz`` of the operations port, never ``/readyz``: a service that loads,
drains or is below its quorum must not be killed for it. It runs every few seconds beside replicas that answer in
milliseconds, so it takes a bare socket and costs hardly more than the start of Python; anything that imports the
settings costs five times as much.
"""

from __future__ import annotations

import os
import socket
import sys

TIMEOUT_S = 3.0
# As in app/settings.py, for which see above.
DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 8081


def status_line(host: str, port: int) -> bytes:
    """The first line of the answer to ``GET /healthz``, empty if none came. Raises ``OSError``."""
    with socket.create_connection((host, port), TIMEOUT_S) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        return connection.makefile("rb").readline()


def main() -> int:
    # An address that means every interface, 0.0.0.0 or ::, is this machine to connect() on Linux.
    host = os.environ.get("QUERY_INTENT_OPS_HOST", DEFAULT_HOST)
    port = int(os.environ.get("QUERY_INTENT_OPS_PORT", DEFAULT_PORT))
    try:
        line = status_line(host, port)
    except OSError as error:
        print(f"healthcheck: {host}:{port}: {error}", file=sys.stderr)
        return 1
    if line.split()[1:2] != [b"200"]:
        print(f"healthcheck: {host}:{port} answered {line.decode('latin-1').strip() or 'nothing'!r}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
