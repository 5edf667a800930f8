"""Connections that idle as long as a load balancer lets them, and a stop with everything going on at once."""

from __future__ import annotations

import contextlib
import os
import signal
import time

from benchmarks.field_cases.case import FieldCase, Finding, connect, unless
from benchmarks.raw_http import Closed, Connection, post
from benchmarks.service import Service

QUERY = post("/v1/intent", {"query": "red shoes"})

IDLE_S = 62.0  # longer than an AWS load balancer's default of 60
IDLE_CONNECTIONS = 50

ROW_MS = 2000
IN_FLIGHT, QUEUED, IDLE = 20, 200, 50
DRAIN_S = 10
SHUTDOWN_BOUND_S = DRAIN_S + 5


def status_of(connection: Connection) -> int:
    """0 where the connection ended without a reply."""
    try:
        return connection.reply().status
    except (Closed, OSError):
        return 0


def keep_alive(scale: float) -> Finding:
    with Service(target="null") as service, contextlib.ExitStack() as stack:
        connections = [stack.enter_context(connect(service)) for _ in range(IDLE_CONNECTIONS)]
        for connection in connections:
            connection.request(QUERY)
        time.sleep(IDLE_S * scale)
        statuses = []
        for connection in connections:
            connection.send(QUERY)
            statuses.append(status_of(connection))
    answered = statuses.count(200)
    figures = {"connections": len(statuses), "idle_s": IDLE_S * scale, "answered": answered}
    return Finding(figures, unless(answered == len(statuses), f"{len(statuses) - answered} connections were closed"))


def shutdown(scale: float) -> Finding:
    row_ms = max(50, round(ROW_MS * scale))
    settings = {"null_ms": row_ms, "workers": 1, "replicas": 1, "timeout_ms": 10_000, "drain_timeout_s": DRAIN_S}
    service = Service(target="null", **settings)
    with service, contextlib.ExitStack() as stack:
        idle = [stack.enter_context(connect(service)) for _ in range(IDLE)]
        asking = [stack.enter_context(connect(service)) for _ in range(IN_FLIGHT + QUEUED)]
        for connection in asking:
            connection.send(QUERY)
        asking[0].has_news(row_ms / 1e3)  # by now the first rows are under way
        signalled = time.monotonic()
        os.kill(service.processes()[0], signal.SIGTERM)
        statuses = [status_of(connection) for connection in asking]
        closed = sum(connection.is_closed_by_server() for connection in idle)
        service.wait()
        stopped_s = time.monotonic() - signalled
    figures = {
        "statuses": {str(status): statuses.count(status) for status in sorted(set(statuses))},
        "idle_closed": closed,
        "exit_s": round(stopped_s, 2),
        "bound_s": SHUTDOWN_BOUND_S,
    }
    wrong = unless(0 not in statuses, f"{statuses.count(0)} clients got no answer")
    wrong += unless(
        stopped_s <= SHUTDOWN_BOUND_S, f"it took {stopped_s:.1f} s to stop, the bound is {SHUTDOWN_BOUND_S}"
    )
    return Finding(figures, wrong)


CASES = [
    FieldCase(
        "F1", "keep-alive", f"{IDLE_CONNECTIONS} connections idle for {IDLE_S:g} s, and none is closed", 1.1, keep_alive
    ),
    FieldCase(
        "F3", "shutdown", "at SIGTERM everybody gets an answer, and the end comes within its bound", 0.5, shutdown
    ),
]
