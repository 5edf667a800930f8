"""Workers that are killed, that hang, or whose supervisor is gone: nobody waits for ever, and totals never fall."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from pathlib import Path

import pytest

from app.status_board import StatusBoard, WorkerState
from benchmarks.raw_http import Closed, Connection, post
from tests.app.service.bundles import LONG_QUERY
from tests.app.service.conftest import Start
from tests.app.service.load import Clients
from tests.app.service.running import RunningService, is_alive, stopped, wait_until

GOOD = post("/v1/intent", {"query": "red shoes"})
COUNTERS = ("_total", "_count", "_sum", "_bucket")


class Watch:
    """Scrapes the operations port again and again and keeps what it saw of readiness and of counters that fell."""

    def __init__(self, service: RunningService) -> None:
        self.readiness: list[int] = []
        self.fallen: list[str] = []
        self.scrapes = 0
        self._service = service
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        highest: dict[str, float] = {}
        while not self._stopping.is_set():
            self.readiness.append(self._service.ops("/readyz").status)
            for name, value in self._service.metrics().items():
                if name.partition("{")[0].endswith(COUNTERS):
                    if value < highest.get(name, 0):
                        self.fallen.append(f"{name} from {highest[name]} to {value}")
                    highest[name] = max(value, highest.get(name, 0))
            self.fallen += [f"{name} is gone" for name in highest.keys() - self._service.metrics().keys()]
            self.scrapes += 1
            self._stopping.wait(0.02)


def test_a_worker_killed_as_soon_as_it_was_ready_is_replaced(start: Start) -> None:
    """Even if the supervisor, which looks ten times a second, never saw that: it could load, so another one can."""
    service = start()
    wait_until(lambda: service.worker_pids)
    (files,) = service.files
    board = StatusBoard(files / "board")
    with stopped(service.process.pid):
        wait_until(lambda: board.read()[0].state is WorkerState.SERVING)
        os.kill(service.worker_pids[0], signal.SIGKILL)

    wait_until(lambda: len(service.worker_pids) == 2)
    service.wait_ready()
    assert len(service.records_of("worker died")) == 1


def test_a_worker_killed_under_load_is_replaced_and_nobody_hangs(start: Start) -> None:
    """F7, F23. Its clients see a closed connection, readiness follows, and every counter only rises."""
    service = start(null_ms=5).wait_ready()
    (first,) = service.worker_pids

    with Watch(service) as watch, Clients(service.traffic, 8) as clients:
        wait_until(lambda: clients.statuses[200] >= 100)
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: 503 in watch.readiness)
        wait_until(lambda: watch.readiness[-1] == 200)
        answered = clients.statuses[200]
        wait_until(lambda: clients.statuses[200] >= answered + 100)
        scrapes = watch.scrapes
        wait_until(lambda: watch.scrapes > scrapes)
        clients.stop()

    assert len(service.worker_pids) == 2
    assert not is_alive(first)
    assert clients.broken >= 1
    assert set(clients.statuses) <= {200, 503}  # 503: accepted by the new worker before its model was warm
    assert not clients.hung
    assert not watch.fallen
    # The dead worker's requests are in the total; those of which it could not write the reply may be missing.
    counted = service.total("requests_total", route="/v1/intent", status="200")
    assert clients.statuses[200] - 8 <= counted <= clients.statuses[200] + 8
    (died,) = service.records_of("worker died")
    assert (died["index"], died["code"]) == (0, -signal.SIGKILL)


def test_a_worker_that_hangs_keeps_no_client_from_the_other(start: Start) -> None:
    """Workers leave a connection to the one that has fewer; a worker that hangs will never have more."""
    service = start(workers=2).wait_ready()
    (files,) = service.files
    board = StatusBoard(files / "board")

    with contextlib.ExitStack() as stack, stopped(service.worker_pids[0]):
        connections = [stack.enter_context(service.connect()) for _ in range(30)]
        assert {connection.request(GOOD).status for connection in connections} == {200}
        by_pid = {line.pid: line.connections for line in board.read() if line.pid}
        assert by_pid == {service.worker_pids[0]: 0, service.worker_pids[1]: 30}


def test_waiting_clients_of_a_killed_worker_are_closed_at_once(start: Start, one_bucket_bundle: Path) -> None:
    """F7."""
    service = start(bundle=one_bucket_bundle, null_ms=100, replicas=1, timeout_ms=10_000).wait_ready()

    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(service.connect()) for _ in range(20)]
        for client in clients:
            client.send(GOOD)
        idle = stack.enter_context(service.connect())
        wait_until(lambda: clients[0].has_news())
        clients[0].reply()
        with stopped(service.worker_pids[0]):
            os.kill(service.worker_pids[0], signal.SIGKILL)
        for client in clients[1:]:
            with contextlib.suppress(Closed):
                assert client.reply().status == 200
        assert idle.is_closed_by_server()


def test_two_workers_share_the_port_and_one_may_die(start: Start) -> None:
    """F7, F23."""
    service = start(workers=2, replicas=1, quorum=0.5, null_ms=5).wait_ready()
    first, second = service.worker_pids

    assert service.ops("/readyz").json() == {
        "ready": True,
        "reason": "",
        "replicas_ready": 2,
        "replicas": 2,
        "replicas_out": [],
    }
    with Clients(service.traffic, 16) as clients:
        wait_until(lambda: have_both_answered(service))
        with Watch(service) as watch:
            os.kill(first, signal.SIGKILL)
            wait_until(lambda: service.records_of("worker died"))
            wait_until(lambda: service.ops("/readyz").json()["replicas_ready"] == 1 or len(service.worker_pids) == 3)
            answered = clients.statuses[200]
            wait_until(lambda: clients.statuses[200] >= answered + 50)
            wait_until(lambda: service.ops("/readyz").json()["replicas_ready"] == 2)

    assert not clients.hung
    assert set(clients.statuses) == {200}  # the newcomer takes no connection before it can answer
    assert set(watch.readiness) == {200}  # half of the replicas are the quorum
    assert not watch.fallen
    assert is_alive(second)
    assert [record["index"] for record in service.records_of("worker started")] == [0, 1, 0]


def test_totals_are_right_across_eight_workers_and_a_death(start: Start) -> None:
    """F23: whichever worker answered, and though one of them is another process by then."""
    service = start(workers=8, replicas=1).wait_ready()
    victim = service.worker_pids[3]

    with Clients(service.traffic, 4) as clients:
        wait_until(lambda: clients.statuses[200] >= 1000)
    before = clients.statuses[200]
    assert wait_until(lambda: service.total("requests_total", route="/v1/intent", status="200") == before)
    os.kill(victim, signal.SIGKILL)
    wait_until(lambda: len(service.worker_pids) == 9)
    wait_until(lambda: service.ops("/readyz").json()["replicas_ready"] == 8)
    with Clients(service.traffic, 4) as others:
        wait_until(lambda: others.statuses[200] >= 1000)

    total = before + others.statuses[200]
    assert clients.broken == others.broken == 0
    assert wait_until(lambda: service.total("requests_total", route="/v1/intent", status="200") == total)
    assert service.total("stage_seconds_count", stage="total") == total
    assert service.total("replicas") == 8


def have_both_answered(service: RunningService) -> bool:
    """After one more request on a new connection."""
    service.send(GOOD)
    rows = " ".join(name for name in service.metrics() if name.startswith("rows_total"))
    return 'replica="0.0"' in rows and 'replica="1.0"' in rows


def test_the_operations_port_answers_for_a_worker_that_hangs_until_it_is_replaced(start: Start) -> None:
    """F6. It is stopped altogether, which is busier than busy."""
    service = start(stall_timeout_s=6).wait_ready()
    service.classify("red shoes")
    wait_until(lambda: service.total("requests_total", route="/v1/intent") == 1)
    (first,) = service.worker_pids

    with stopped(first):
        for path in ("/healthz", "/metrics") * 3:
            assert service.ops(path).status == 200
        wait_until(lambda: service.ops_status("/readyz") == 503)  # nobody would be answered
        assert service.ops("/readyz").json()["replicas_out"] == ["0"]
        assert wait_until(lambda: service.total("requests_total", route="/v1/intent") == 1)
        wait_until(lambda: len(service.worker_pids) == 2)
    assert service.wait_ready().classify("red shoes", timeout_ms=10_000).status == 200
    assert service.records_of("worker hangs")
    assert not is_alive(first)


def test_workers_end_by_themselves_when_the_supervisor_is_gone(start: Start, one_bucket_bundle: Path) -> None:
    service = start(bundle=one_bucket_bundle, workers=2, null_ms=100, replicas=1).wait_ready()
    address = service.traffic
    pids = service.worker_pids
    assert len(pids) == 2

    with service.connect() as client:
        client.send(post("/v1/intents", {"queries": [LONG_QUERY] * 10, "timeout_ms": 10_000}))
        wait_until(lambda: service.total("inflight") == 1)
        service.process.kill()
        assert client.reply().status == 200  # a drain as any other
        wait_until(lambda: not any(map(is_alive, pids)))

    assert service.records_of("the supervisor is gone; stopping")
    with pytest.raises(ConnectionRefusedError):
        Connection(address)
