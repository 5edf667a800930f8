"""Stopping: who was promised an answer gets it, who idles is sent away, and the end comes in bound."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

import pytest

from benchmarks.raw_http import Reply, post
from tests.app.service.bundles import LONG_QUERY
from tests.app.service.conftest import Start
from tests.app.service.load import Clients
from tests.app.service.running import RunningService, is_alive, stopped, wait_until

PATIENT = post("/v1/intent", {"query": LONG_QUERY, "timeout_ms": 10_000})


def test_sigterm_answers_what_is_in_flight_and_closes_what_idles(start: Start, one_bucket_bundle: Path) -> None:
    """F3: 3 running or waiting rows, 30 idle connections."""
    settings = {"null_ms": 100, "replicas": 1, "keep_alive_s": 600, "fallback": "off"}
    service = start(bundle=one_bucket_bundle, **settings).wait_ready()

    with contextlib.ExitStack() as stack:
        busy = [stack.enter_context(service.connect()) for _ in range(3)]
        idle = [stack.enter_context(service.connect()) for _ in range(30)]
        used = stack.enter_context(service.connect())
        assert used.request(post("/v1/intent", {"query": "a", "timeout_ms": 10_000})).status == 200
        for client in busy:
            client.send(PATIENT)
        service.wait_until_read()
        assert service.files
        service.process.terminate()

        assert [client.reply().status for client in busy] == [200] * 3
        assert all(client.is_closed_by_server() for client in [*busy, *idle, used])
    assert service.wait_exit() == 0
    assert not service.files
    assert [record["message"] for record in service.records if record["level"] in ("WARNING", "ERROR")] == []


def test_what_still_waits_at_the_drains_bound_is_told_so(start: Start, one_bucket_bundle: Path) -> None:
    """F3: 3 s of work and 1.4 s to do it in. A body that never comes doesn't hold up the end either."""
    service = start(bundle=one_bucket_bundle, null_ms=100, replicas=1, drain_timeout_s=1.4).wait_ready()

    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(service.connect()) for _ in range(30)]
        half = stack.enter_context(service.connect())
        half.send(PATIENT[:-5])
        for client in clients:
            client.send(PATIENT)
        service.wait_until_read()
        service.process.terminate()
        replies = [client.reply() for client in clients]
        assert half.is_closed_by_server()

    statuses = [reply.status for reply in replies]
    answered = statuses.count(200)
    assert answered >= 2
    assert statuses == [200] * answered + [503] * (30 - answered)
    for reply in replies[answered:]:
        problem = reply.json()
        assert problem["type"] == "urn:query-intent:problem:not-ready"
        assert (problem["status"], problem["detail"]) == (503, "the service is stopping")
        assert int(reply.headers["retry-after"]) >= 1
        assert reply.headers["connection"] == "close"
    assert answered <= 28
    assert service.wait_exit() == 0


def test_during_the_delay_readiness_says_no_and_every_request_is_served(start: Start) -> None:
    """F2. Balancers need a moment to notice; until then, and at its end, nobody is turned away."""
    service = start(null_ms=60, replicas=1, drain_delay_s=6, timeout_ms=10_000).wait_ready()

    with service.connect() as old:
        assert old.request(post("/v1/intent", {"query": "a"})).status == 200
        service.process.terminate()  # with nothing in flight, which must not be taken for the end
        wait_until(lambda: service.ops("/readyz").status == 503)
        with Clients(service.traffic, 6) as clients:
            for reply in (service.ops("/readyz"), wait_until(lambda: not_ready(service))):
                assert reply.json()["ready"] is False
                assert reply.json()["reason"].startswith("draining")
            assert service.get("/healthz").status == 200
            assert old.request(post("/v1/intent", {"query": "a"})).headers["connection"] == "close"
            assert service.get("/v1/model").headers["connection"] == "close"
            assert service.classify("").headers["connection"] == "close"
            assert service.wait_exit() == 0

    assert clients.statuses[200] >= 20
    assert not clients.hung
    for reply in clients.replies:
        assert (reply.status, reply.headers["connection"]) == (200, "close")


def not_ready(service: RunningService) -> Reply | None:
    reply = service.get("/readyz")
    return reply if reply.status == 503 else None


@pytest.mark.parametrize("signals", [[signal.SIGINT], [signal.SIGTERM, signal.SIGTERM]], ids=["Ctrl-C", "twice"])
def test_the_delay_can_be_skipped(start: Start, one_bucket_bundle: Path, signals: list[signal.Signals]) -> None:
    """And still what is in flight is answered."""
    service = start(bundle=one_bucket_bundle, null_ms=100, replicas=1, drain_delay_s=600).wait_ready()

    with service.connect() as client:
        client.send(post("/v1/intents", {"queries": [LONG_QUERY] * 8, "timeout_ms": 10_000}))
        service.wait_until_read()
        for number in signals:
            service.process.send_signal(number)
            wait_until(lambda: service.ops_status("/readyz") != 200)
        assert client.reply().status == 200
    assert service.wait_exit() == 0  # which gives up long before the delay would have ended
    assert service.plain_lines == []


def test_a_terminal_that_closes_ends_what_runs_in_it(tmp_path: Path, null_bundle: Path) -> None:
    """As long as it is open, SIGHUP asks for a swap, there as anywhere."""
    terminal, stdin = os.openpty()
    with RunningService(tmp_path / "service", stdin=stdin, bundle=null_bundle, drain_delay_s=600) as service:
        os.close(stdin)
        service.wait_ready()
        service.process.send_signal(signal.SIGHUP)
        wait_until(lambda: service.records_of("bundle swap"))
        os.close(terminal)
        service.process.send_signal(signal.SIGHUP)  # as the terminal's shell does, to whatever was started in it
        assert service.wait_exit() == 0
        assert service.records_of("draining")
    assert len(service.records_of("bundle swap")) == 1


def test_a_worker_that_hangs_is_ended_at_the_bound(start: Start) -> None:
    service = start(drain_timeout_s=0).wait_ready()
    (pid,) = service.worker_pids

    with stopped(pid):
        service.process.terminate()
        assert service.wait_exit() == 0

    assert not is_alive(pid)
    assert service.records_of("1 workers outlived the drain; killing them")
