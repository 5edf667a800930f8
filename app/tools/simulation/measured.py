"""Row times of a bundle's target as this machine runs it, for simulating a service on machines like it."""

from __future__ import annotations

import asyncio
import time

import numpy as np

from app.bundle import Bundle
from app.engine import Engine
from app.tools.simulation.row_times import RowTimes

# Of a replica before a row: none with all of them at work, then what a search box leaves at some hundred queries a
# second, and at some tens, when another program has had the caches meanwhile.
PAUSES_S = (0.0, 0.002, 0.010)
ROWS = 40  # measured for each pause and bucket
PATIENT_S = 60.0


def measure(bundle: Bundle, target: str, *, replicas: int) -> RowTimes:
    """Load ``replicas`` copies as the service does and time rows on them, for some seconds.

    Raises what ``Engine`` raises.
    """
    engine = Engine(bundle, target, replicas=replicas, slo_s=PATIENT_S, queue_tokens=1 << 20)
    return asyncio.run(_measure(engine, bundle.manifest.max_tokens))


async def _measure(engine: Engine, max_tokens: int) -> RowTimes:
    await engine.open()
    try:
        latency = engine.pool.queue.latency
        warm_s = {bucket: latency[bucket] for bucket in latency.buckets}
        # No single query fills a longer one.
        buckets = [bucket for bucket in latency.buckets if bucket <= max_tokens]
        observed_s: dict[float, dict[int, list[float]]] = {}
        for pause_s in PAUSES_S:
            lanes = 1 if pause_s else engine.replicas
            observed_s[pause_s] = {}
            for bucket in buckets:
                # Idle replicas take turns, so that each of them pauses for longer than there is nothing to do.
                wait_s = pause_s / engine.replicas
                lane = (_time_rows(engine, bucket, wait_s, ROWS // lanes + 1) for _ in range(lanes))
                seconds = [each for timed in await asyncio.gather(*lane) for each in timed]
                observed_s[pause_s][bucket] = seconds
    finally:
        engine.close()
    return RowTimes(warm_s, observed_s, max_tokens, one_query_a_row=engine.target.one_query_a_row)


async def _time_rows(engine: Engine, bucket: int, pause_s: float, rows: int) -> list[float]:
    """Seconds of so many rows of this bucket, one after another."""
    query = np.ones(bucket, np.int64)
    seconds = []
    for _ in range(rows):
        await asyncio.sleep(pause_s)
        (outcome,) = await engine.pool.run([query], deadline=time.perf_counter() + PATIENT_S)
        if isinstance(outcome.result, Exception):
            raise outcome.result
        seconds.append(outcome.inference_s)
    return seconds
