"""The tail of ordinary traffic: alone, by law of arrival, over ten minutes; and what a request costs."""

from __future__ import annotations

from typing import Any

from app.tools.arrivals import LAWS
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
from benchmarks.raw_http import Reply, post
from benchmarks.service import Service

ALONE = 1000
ALONE_ROW_MS = 3.0
ALONE_MORE_MS = 1.0

SLO_MS = 10.0
SHARES = (0.5, 0.8, 0.95)
LAW_S = 30.0

STEADY_RATE = 250.0  # about half of what the shipped bundle holds on two cores
STEADY_S = 600.0
STEADY_RATIO = 5.0

CPU_RATE, CPU_S, CPU_LIMIT_US = 5000.0, 20.0, 85.0


def alone(scale: float) -> Finding:
    with Service(target="null", null_ms=ALONE_ROW_MS) as service, connect(service) as connection:
        replies = [connection.request(post("/v1/intent", {"query": f"lamp {n}"})) for n in range(round(ALONE * scale))]
    tail_ms = percentile([_total_ms(reply) for reply in replies], 99)
    limit_ms = ALONE_ROW_MS + ALONE_MORE_MS
    sentence = f"one at a time, the server's P99 is {tail_ms:.2f} ms for rows of {ALONE_ROW_MS:g}"
    return Finding({"requests": len(replies), "total_p99_ms": tail_ms}, unless(tail_ms <= limit_ms, sentence))


def _total_ms(reply: Reply) -> float:
    return float(reply.headers["server-timing"].partition("total;dur=")[2].partition(",")[0])


def arrivals(scale: float) -> Finding:
    with Service() as service:
        seconds = ("--duration", f"{max(1.0, LAW_S * scale / 3):g}")
        found = result_of(start_load(service, "--find-rate", "--slo-p99-ms", f"{SLO_MS:g}", *seconds))["found"]
        if (rate := found["rate"]) is None:
            return Finding({"found": found}, ["no rate holds the objective"])
        tails: dict[str, Any] = {
            law: {
                f"{share:g}": brief(put_load(service, share * rate, LAW_S * scale, "--arrivals", law))
                for share in SHARES
            }
            for law in LAWS
        }
        advertised = put_load(service, rate, LAW_S * scale)
    figures = {"rate": rate, "by_law": tails, "poisson_at_rate": brief(advertised)}
    tail_ms = advertised["latency_ms"]["p99"]
    return Finding(
        figures, unless(tail_ms < SLO_MS, f"at {rate:.0f}/s the P99 of Poisson arrivals is {tail_ms:.1f} ms")
    )


def steady(scale: float) -> Finding:
    with Service() as service:
        result = put_load(service, STEADY_RATE, STEADY_S * scale)
    ratio = result["latency_ms"]["p99_9"] / result["latency_ms"]["p50"]
    sentence = f"P99.9 is {ratio:.1f} times P50"
    return Finding({"load": brief(result), "ratio": round(ratio, 2)}, unless(ratio < STEADY_RATIO, sentence))


def cost(scale: float) -> Finding:
    with Service(target="null", workers=1, replicas=1) as service:
        before_s = service.worker_cpu_s()
        result = put_load(service, CPU_RATE, CPU_S * scale, "--warmup", "0")
        spent_us = (service.worker_cpu_s() - before_s) * 1e6 / max(1, result["completed"])
    sentence = f"a request costs its worker {spent_us:.0f} µs of CPU"
    figures = {"load": brief(result), "worker_cpu_us": round(spent_us, 1), "limit_us": CPU_LIMIT_US}
    return Finding(figures, unless(spent_us <= CPU_LIMIT_US, sentence))


CASES = [
    FieldCase("F11", "alone", f"a lone request takes its row and at most {ALONE_MORE_MS:g} ms", 0.2, alone),
    FieldCase(
        "F15",
        "arrivals",
        "the rate that is named holds its P99 for Poisson arrivals; other laws beside it",
        10,
        arrivals,
    ),
    FieldCase("F22", "steady", f"over ten minutes P99.9 is less than {STEADY_RATIO:g} times P50", 10.2, steady),
    FieldCase(
        "F38", "cost", f"a request costs its worker at most {CPU_LIMIT_US:g} µs of CPU at {CPU_RATE:g}/s", 0.5, cost
    ),
]
