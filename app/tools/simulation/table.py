"""The lines for a person: what is simulated, one line a rate, and what it comes to."""

from __future__ import annotations

from collections.abc import Sequence

from app.tools.simulation.deployment import Deployment
from app.tools.simulation.figures import Figures
from app.tools.simulation.row_times import RowTimes

SLO_SHARE = 0.99

HEADER = (
    f"{'rate/s':>7}{'P50 ms':>8}{'P99 ms':>8}{'P99.9':>8}{'answers':>9}{'goodput':>9}{'429':>6}{'504':>6}"
    f"{'load':>6}{'fill':>6}{'a row':>7}{'busy':>6}{'loops':>7}"
)


def title(deployment: Deployment) -> str:
    processes = f"{_count(deployment.workers, 'worker')} of {_count(deployment.replicas, 'replica')}"
    shared = deployment.shared_cores
    cores = f"{_count(shared, 'core')} shared with the event loops" if shared else "a core for each replica"
    return f"{processes}, {cores}, {_count(deployment.connections, 'connection')}"


def rows(row_times: RowTimes) -> str:
    shown = ", ".join(f"{seconds * 1e3:.2f} ({bucket})" for bucket, seconds in sorted(row_times.warm_s.items()))
    return f"ms a row, by its tokens: {shown}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def line(figures: Figures) -> str:
    """``busy`` are the replicas, and ``loops`` the event loop, of the worker that has the most to do."""
    p50, p99, p99_9 = (
        "–" if each is None else f"{each:.2f}" for each in (figures.p50_ms, figures.p99_ms, figures.p99_9_ms)
    )
    return (
        f"{figures.rate:>7,.0f}{p50:>8}{p99:>8}{p99_9:>8}{figures.answered:>9,.0f}{figures.goodput:>9,.0f}"
        f"{figures.rejected_share:>6.0%}{figures.expired_share:>6.0%}{figures.load:>6.0%}{figures.row_fill:>6.0%}"
        f"{figures.queries_a_row:>7.1f}{figures.busiest_replicas:>6.0%}{figures.busiest_loop:>7.0%}"
    )


def verdict(sweep: Sequence[Figures], slo_ms: float) -> str:
    """Up to which of the rates the objective holds, for all queries and not only for those that were answered."""
    held = 0.0
    for figures in sorted(sweep, key=lambda each: each.rate):
        if figures.within_slo_share < SLO_SHARE:
            break
        held = figures.rate
    if not held:
        return f"at none of these rates are {SLO_SHARE:.0%} of the queries answered within {slo_ms:g} ms"
    return f"{SLO_SHARE:.0%} of the queries are answered within {slo_ms:g} ms up to {held:,.0f}/s, of these rates"
