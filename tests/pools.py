"""A real pool with real replica threads over the engine's stand-in, and how tests wait for what happens in a thread."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.batching.latency import LatencyTable
from app.batching.pool import ReplicaPool
from app.batching.queue import BatchQueue
from app.batching.replica import FinishedRow, Replica
from app.batching.request import Outcome
from tests.fakes import PATIENCE_S, FakeBackend, decode, readable_rows

BUCKETS = (8, 16, 32)


class Recorder:
    """What the pool tells its observers."""

    def __init__(self) -> None:
        self.rows: list[FinishedRow] = []
        self.cancelled: Counter[str] = Counter()

    def on_row(self, finished: FinishedRow) -> None:
        self.rows.append(finished)

    def on_cancelled(self, stage: str, count: int) -> None:
        self.cancelled[stage] += count


def make_replicas(pool: ReplicaPool, backend: FakeBackend, count: int) -> list[Replica]:
    return [
        Replica(
            index,
            backend=backend,
            rows=readable_rows(*BUCKETS),
            decode=decode,
            canary=None,
            source=pool,
            clock=pool._clock,
        )
        for index in range(count)
    ]


def make_queue(_seconds: object = None, *, max_tokens: int = 10_000, row_s: float = 1e-4) -> BatchQueue:
    return BatchQueue(LatencyTable(dict.fromkeys(BUCKETS, row_s)), slo_s=10.0, max_tokens=max_tokens)


@asynccontextmanager
async def open_pool(
    backend: FakeBackend,
    *,
    replicas: int = 1,
    queue: Callable[[object], BatchQueue] = make_queue,
    recorder: Recorder | None = None,
    **options: Any,
) -> AsyncIterator[ReplicaPool]:
    if recorder is not None:
        options = {"on_row": recorder.on_row, "on_cancelled": recorder.on_cancelled} | options
    pool = ReplicaPool(**options)
    try:
        await pool.open(make_replicas(pool, backend, replicas), queue)
        yield pool
    finally:
        backend.let_go()
        backend.may_load.set()
        await asyncio.to_thread(pool.close, timeout_s=PATIENCE_S)
        assert not [thread for thread in threading.enumerate() if thread.name.startswith("replica-")]


def run(
    pool: ReplicaPool, *queries: NDArray[np.int64], within_s: float = PATIENCE_S, is_bulk: bool = False
) -> asyncio.Task[list[Outcome]]:
    async def outcomes() -> list[Outcome]:
        return await pool.run(queries, deadline=deadline, is_bulk=is_bulk)

    deadline = pool._clock() + within_s
    return asyncio.ensure_future(outcomes())


async def running(backend: FakeBackend, rows: int = 1) -> None:
    """Returns once ``rows`` more rows have reached the model."""
    await asyncio.to_thread(backend.wait_until_running, rows)


async def turn_until(condition: Callable[[], bool]) -> None:
    async def turn() -> None:
        while not condition():  # noqa: ASYNC110 - what it waits for happens in a replica's thread
            await asyncio.sleep(0)

    await asyncio.wait_for(turn(), PATIENCE_S)


def results(outcomes: Iterable[Outcome]) -> list[Any]:
    return [outcome.result for outcome in outcomes]
