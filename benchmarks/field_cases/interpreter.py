"""The interpreter's lock: how late the event loop is beside a thread that computes in Python."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from array import array

import uvloop

from app.tools.arrivals import Span, schedule
from app.tools.load.pacing import OpenLoop
from app.worker import SWITCH_INTERVAL_S
from benchmarks.field_cases.case import FieldCase, Finding, percentile, unless

SECONDS = 30.0
WAKE_UPS_PER_S = 200.0
LAG_P99_MS = 2.0


def switch_interval(scale: float) -> Finding:
    default_s = sys.getswitchinterval()
    lags = {
        f"{interval_s * 1e3:g} ms": _lag_ms(interval_s, SECONDS * scale)
        for interval_s in (default_s, SWITCH_INTERVAL_S)
    }
    sys.setswitchinterval(default_s)
    tail_ms = lags[f"{SWITCH_INTERVAL_S * 1e3:g} ms"]["p99_ms"]
    return Finding({"lag": lags}, unless(tail_ms < LAG_P99_MS, f"the loop is {tail_ms:.1f} ms late (P99)"))


def _lag_ms(interval_s: float, seconds: float) -> dict[str, float]:
    sys.setswitchinterval(interval_s)
    is_over = threading.Event()
    spinning = threading.Thread(target=_spin, args=(is_over,))
    spinning.start()
    try:
        lag_ms = [lag / 1e6 for lag in uvloop.run(_wake_up(seconds))]
    finally:
        is_over.set()
        spinning.join()
    return {"p50_ms": percentile(lag_ms, 50), "p99_ms": percentile(lag_ms, 99)}


async def _wake_up(seconds: float) -> array[int]:
    offsets = schedule("constant", [Span(seconds, WAKE_UPS_PER_S)], seed=0)
    await asyncio.sleep(0)
    loop = OpenLoop(array("q", (offsets + time.monotonic_ns()).tobytes()), lambda _number: None)
    await loop.run()
    return loop.lag_ns


def _spin(is_over: threading.Event) -> None:
    number = 0
    while not is_over.is_set():
        for _ in range(1000):
            number += 1


CASES = [
    FieldCase(
        "F21",
        "switch-interval",
        f"beside a spinning thread the loop's P99 lag is under {LAG_P99_MS:g} ms",
        1.1,
        switch_interval,
    ),
]
