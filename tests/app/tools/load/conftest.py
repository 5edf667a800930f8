from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.app.tools.load.tiny_server import Behaviour, Serve, TinyServer


@pytest.fixture
def serve() -> Iterator[Serve]:
    servers: list[TinyServer] = []

    def start(behaviour: Behaviour) -> TinyServer:
        servers.append(TinyServer(behaviour))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()
