"""The operations port outlives slow and greedy clients: it runs in the process that looks after the workers."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.health import Readiness
from app.neuron_metrics import NeuronMetrics
from app.operations import OperationsServer
from benchmarks.raw_http import Closed, Connection, Reply, request
from tests.app.service.running import wait_until

Address = tuple[str, int]
HEALTHZ = request("GET", "/healthz")


async def serve(listening: socket.socket, metrics: Path, stop: threading.Event) -> None:
    server = OperationsServer(
        listening,
        readiness=lambda: Readiness(1, 1, ""),
        metrics=metrics,
        collectors=[NeuronMetrics()],
        max_connections=2,
        read_timeout_s=0.2,
    )
    await server.start()
    await asyncio.to_thread(stop.wait)
    await server.stop()


@pytest.fixture
def operations(tmp_path: Path) -> Iterator[Address]:
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=lambda: asyncio.run(serve(listening, tmp_path, stop)))
        thread.start()
        yield listening.getsockname()
        stop.set()
        thread.join()


def test_a_request_that_comes_too_slowly_is_ended(operations: Address) -> None:
    with Connection(operations) as connection:
        assert connection.request(HEALTHZ[:-5]).status == 408
        assert connection.is_closed_by_server()


def test_one_connection_too_many_is_refused_and_the_others_stay(operations: Address) -> None:
    with Connection(operations) as first, Connection(operations) as second:
        assert [first.request(request("GET", "/readyz")).status, second.request(HEALTHZ).status] == [200, 200]
        with Connection(operations) as third:
            refused = third.reply()
            assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        assert first.request(HEALTHZ).status == 200

    def served() -> Reply | None:
        with Connection(operations) as connection, contextlib.suppress(Closed):
            return connection.request(HEALTHZ)
        return None

    assert wait_until(lambda: (reply := served()) and reply.status == 200)


def test_metrics_are_served_by_the_same_rules(operations: Address) -> None:
    with Connection(operations) as connection:
        assert connection.request(request("GET", "/metrics")).status == 200


def test_what_is_known_of_the_machine_is_among_them(operations: Address) -> None:
    with Connection(operations) as connection:
        assert b"\nquery_intent_neuron_monitor_up 0.0\n" in connection.request(request("GET", "/metrics")).body
