"""What clients of one instance see while its model is swapped, while it stops, and of its health under overload."""

from __future__ import annotations

import json
import signal
import statistics
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from app.tools.load.percentiles import distribution
from benchmarks.raw_http import Closed, Connection, post, request
from benchmarks.rehearsal.bundles import of_version
from benchmarks.run import load
from benchmarks.service import Service

SWAPS = 3
NORMAL_S, SWAP_S = 5.0, 8.0  # of load without and with a swap in it
PATIENCE_S = 60.0

QUEUED, IDLE = 200, 50
DRAIN_DELAY_S, DRAIN_TIMEOUT_S = 1.0, 3.0

ROW_MS, REPLICAS = 10.0, 2
CAPACITY = REPLICAS * 1e3 / ROW_MS  # queries a second, each of them long enough for a row of its own
LONG_QUERY = " ".join(["comfortable waterproof trail running shoes"] * 20)
OVERLOAD_S = 10.0
PROBE_EVERY_S = 0.05


def swap(rate: float, folder: Path) -> dict[str, Any]:
    """The shipped model by another release of it and back, by SIGHUP, against the same load without."""
    releases = [of_version(version, folder / version) for version in ("one", "two")]
    link, log = folder / "current", folder / "log"
    link.symlink_to(releases[0])
    normal, swapped = [], []
    with Service(log, bundle=link, target="cpu", fallback="on") as service:
        for number in range(1, SWAPS + 1):
            normal.append(load(service.traffic, rate, NORMAL_S, None, number))
            link.unlink()
            link.symlink_to(releases[number % 2])
            service.send_signal(signal.SIGHUP)
            swapped.append(load(service.traffic, rate, SWAP_S, None, number, warmup=0))
            _wait_for_swaps(log, number)
    records = list(_swaps(log))
    runs = normal + swapped
    return {
        "rate": rate,
        "results": [record["result"] for record in records],
        "seconds": [record["seconds"] for record in records],
        "requests": sum(run["scheduled"] for run in runs),
        "failed": sum(run["scheduled"] - run["statuses"].get("200", 0) for run in runs),
        "by_fallback": sum(run["sources"].get("fallback", 0) for run in swapped),
        "normal_p99_ms": statistics.median(run["latency_ms"]["p99"] for run in normal),
        "swap_p99_ms": statistics.median(run["latency_ms"]["p99"] for run in swapped),
        "generator_late": any(run["lag"]["void"] for run in runs),
    }


def _swaps(log: Path) -> Iterator[dict[str, Any]]:
    for line in log.read_text(encoding="utf-8").splitlines():
        if line.startswith("{") and (record := json.loads(line))["message"] == "bundle swap":
            yield record


def _wait_for_swaps(log: Path, count: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while len(list(_swaps(log))) < count:
        if time.monotonic() > deadline:
            raise RuntimeError(f"a swap took more than {PATIENCE_S:g} s")
        time.sleep(0.1)


def stop() -> dict[str, Any]:
    """SIGTERM with so many queries queued and so many connections idle: 6 s of work, and 4 s until the bound."""
    settings = {"target": "null", "null_ms": 300, "workers": 1, "replicas": 1, "timeout_ms": 10_000}
    with (
        Service(**settings, drain_delay_s=DRAIN_DELAY_S, drain_timeout_s=DRAIN_TIMEOUT_S) as service,
        ExitStack() as stack,
    ):
        url = urlsplit(service.traffic)
        address = str(url.hostname), int(url.port or 0)
        busy, idle = ([stack.enter_context(Connection(address)) for _ in range(count)] for count in (QUEUED, IDLE))
        for number, client in enumerate(busy):
            client.send(post("/v1/intent", {"query": f"running shoes {number}"}))
        for _ in range(2):  # whose answer comes after all of them have been read
            idle[0].request(request("GET", "/healthz"))
        service.send_signal(signal.SIGTERM)
        started = time.perf_counter()
        statuses = Counter(_status(client) for client in busy)
        closed = sum(client.is_closed_by_server() for client in idle)
        code = service.wait()
        seconds = time.perf_counter() - started
    return {
        "queued": QUEUED,
        "answered": dict(sorted(statuses.items())),
        "idle": IDLE,
        "idle_closed": closed,
        "exit_code": code,
        "exit_s": round(seconds, 2),
        "drain_s": DRAIN_DELAY_S + DRAIN_TIMEOUT_S,
    }


def _status(client: Connection) -> str:
    try:
        return str(client.reply().status)
    except Closed:
        return "none"


class Probe:
    """Asks for ``path`` at the operations port, on a new connection each time as health checks do."""

    def __init__(self, operations: str, path: str) -> None:
        url = urlsplit(operations)
        self._address = str(url.hostname), int(url.port or 0)
        self._path = path
        self._latencies_ms: list[float] = []
        self._statuses: Counter[int] = Counter()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Probe:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    @property
    def found(self) -> dict[str, Any]:
        return {"latency_ms": distribution(np.array(self._latencies_ms)), "statuses": dict(self._statuses)}

    def _run(self) -> None:
        while not self._stopping.wait(PROBE_EVERY_S):
            started = time.perf_counter()
            with Connection(self._address) as connection:
                self._statuses[connection.request(request("GET", self._path, "Connection: close")).status] += 1
            self._latencies_ms.append((time.perf_counter() - started) * 1e3)


def overload(folder: Path) -> dict[str, Any]:
    """What the operations port takes at three times what the replicas can compute."""
    queries = folder / "long.txt"
    queries.write_text(LONG_QUERY + "\n")
    with (
        Service(target="null", null_ms=ROW_MS, workers=1, replicas=REPLICAS) as service,
        Probe(service.operations, "/metrics") as metrics,
        Probe(service.operations, "/readyz") as readyz,
    ):
        result = load(service.traffic, 3 * CAPACITY, OVERLOAD_S, queries, 0)
    return {
        "capacity": CAPACITY,
        "rate": 3 * CAPACITY,
        "statuses": result["statuses"],
        "metrics": metrics.found,
        "readyz": readyz.found,
    }
