"""Health and readiness: the first request after ready, and probes while far too much comes."""

from __future__ import annotations

import statistics
import time

from benchmarks.field_cases.case import (
    FieldCase,
    Finding,
    brief,
    connect,
    percentile,
    put_load,
    result_of,
    start_load,
    unless,
)
from benchmarks.field_cases.overload import CAPACITY, SETTINGS
from benchmarks.raw_http import Connection, post, request
from benchmarks.service import Service

STARTS = 5
STEADY_RATE, STEADY_S = 100.0, 10.0
FIRST_LIMIT = 1.2  # times the steady P99

OVERLOAD_S = 60.0
PROBE_EVERY_S = 0.02
HEALTH_P99_MS = 50.0
LARGE = post("/v1/intent", {"query": "a" * 2_000_000})


def first_request(scale: float) -> Finding:
    """Against the tail of scattered arrivals: requests one after another find the model in the core's caches."""
    firsts, tails = [], []
    for _ in range(STARTS):
        with Service() as service:
            with connect(service) as connection:
                started = time.perf_counter()
                connection.request(post("/v1/intent", {"query": "red shoes", "timeout_ms": 10_000}))
                firsts.append(round((time.perf_counter() - started) * 1e3, 2))
            tails.append(put_load(service, STEADY_RATE, STEADY_S * scale)["latency_ms"]["p99"])
    first_ms, tail_ms = statistics.median(firsts), statistics.median(tails)
    figures = {"first_ms": firsts, "steady_p99_ms": tails}
    sentence = f"the first request took {first_ms:.1f} ms, the steady P99 is {tail_ms:.1f}"
    return Finding(figures, unless(first_ms <= FIRST_LIMIT * tail_ms, sentence))


def under_overload(scale: float) -> Finding:
    seconds = OVERLOAD_S * scale
    with Service(target="null", **SETTINGS) as service:
        load = start_load(
            service,
            "--rate",
            f"{3 * CAPACITY:g}",
            "--duration",
            f"{seconds:g}",
            "--warmup",
            "0",
            "--connections",
            "512",
        )
        milliseconds, statuses, sent_large = [], [], 0.0
        with Connection(_operations(service)) as probe:
            while load.poll() is None:
                for path in ("/healthz", "/readyz"):
                    started = time.perf_counter()
                    statuses.append(probe.request(request("GET", path)).status)
                    milliseconds.append((time.perf_counter() - started) * 1e3)
                if time.monotonic() - sent_large > 1:
                    sent_large = time.monotonic()
                    with connect(service) as large:
                        large.request(LARGE)
                time.sleep(PROBE_EVERY_S)
        result = result_of(load)
    tail_ms, bad = percentile(milliseconds, 99), len(statuses) - statuses.count(200)
    figures = {"probes": len(statuses), "not_200": bad, "p99_ms": tail_ms, "load": brief(result)}
    wrong = unless(not bad, f"{bad} probes were not answered 200")
    return Finding(figures, wrong + unless(tail_ms < HEALTH_P99_MS, f"probes' P99 is {tail_ms:.0f} ms"))


def _operations(service: Service) -> tuple[str, int]:
    host, _, port = service.operations.removeprefix("http://").rpartition(":")
    return host, int(port)


CASES = [
    FieldCase(
        "F4",
        "first-request",
        f"after ready the first takes at most {FIRST_LIMIT:g} x the P99 at {STEADY_RATE:g}/s",
        1.5,
        first_request,
    ),
    FieldCase(
        "F6", "health", f"at 3 x capacity probes are 200 with a P99 under {HEALTH_P99_MS:g} ms", 1.1, under_overload
    ),
]
