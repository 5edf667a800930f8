"""What a run says: latency, goodput, how full rows were, who was turned away, and how busy everything was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.tools.simulation.worker import Ending, Worker
from app.tools.simulation.workload import Workload


@dataclass(frozen=True, slots=True)
class Figures:
    """Rates are a second; latencies those of the answered, in ms; shares 0 to 1.

    - ``answered``: answers a second, and ``goodput`` those within the objective; of what is sent before arrivals end;
    - ``attempts``: how often a query was sent on average; its latency is that of the last attempt;
    - ``within_slo_share``, ``rejected_share``, ``expired_share``: of all queries;
    - ``load``: the tokens that come, of what the replicas would compute in full rows of the most efficient bucket;
    - ``row_fill``: the share of the rows' tokens that are queries';
    - ``replicas_busy``, ``loops_busy``: the share of the time, on average; ``busiest_…`` of the worker with the most.
    """

    rate: float
    queries: int
    p50_ms: float | None
    p99_ms: float | None
    p99_9_ms: float | None
    answered: float
    goodput: float
    within_slo_share: float
    rejected_share: float
    expired_share: float
    load: float
    row_fill: float
    queries_a_row: float
    attempts: float
    replicas_busy: float
    busiest_replicas: float
    loops_busy: float
    busiest_loop: float


def summarise(
    workload: Workload,
    endings: NDArray[np.int8],
    sent_s: NDArray[np.float64],
    ended_s: NDArray[np.float64],
    attempts: NDArray[np.int64],
    workers: Sequence[Worker],
    *,
    slo_s: float,
    capacity: float,
) -> Figures:
    """How each query ended, when its last attempt was sent and ended, and how many it took.

    ``capacity`` is what all replicas compute at most, in tokens a second.
    """
    count, duration_s = len(endings), workload.duration_s
    is_answered = endings == Ending.ANSWERED
    latencies_s = (ended_s - sent_s)[is_answered]
    is_within = latencies_s <= slo_s
    before_the_end = (sent_s <= duration_s)[is_answered]  # what retries make of it later is no rate at this load
    percentiles = np.percentile(latencies_s, [50, 99, 99.9]) * 1e3 if latencies_s.size else [None] * 3
    rows = max(1, sum(worker.rows for worker in workers))
    # Past the last arrival everything is only emptied, so busy time is held against the arrivals' own duration.
    replicas = [min(1.0, worker.busy_s / worker.replicas / duration_s) for worker in workers]
    loops = [min(1.0, worker.loop.busy_s / duration_s) for worker in workers]
    p50_ms, p99_ms, p99_9_ms = (None if each is None else round(float(each), 3) for each in percentiles)
    return Figures(
        rate=workload.rate,
        queries=count,
        p50_ms=p50_ms,
        p99_ms=p99_ms,
        p99_9_ms=p99_9_ms,
        answered=round(int(before_the_end.sum()) / duration_s, 1),
        goodput=round(int((is_within & before_the_end).sum()) / duration_s, 1),
        within_slo_share=round(int(is_within.sum()) / count, 6),
        rejected_share=round(float((endings == Ending.REJECTED).mean()), 6),
        expired_share=round(float((endings == Ending.EXPIRED).mean()), 6),
        load=round(sum(workload.tokens) / duration_s / capacity, 4),
        row_fill=round(sum(w.row_tokens for w in workers) / max(1, sum(w.bucket_tokens for w in workers)), 4),
        queries_a_row=round(sum(w.row_queries for w in workers) / rows, 2),
        attempts=round(float(attempts.mean()), 3),
        replicas_busy=round(sum(replicas) / len(workers), 4),
        busiest_replicas=round(max(replicas), 4),
        loops_busy=round(sum(loops) / len(workers), 4),
        busiest_loop=round(max(loops), 4),
    )
