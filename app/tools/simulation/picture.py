"""A picture of a sweep: latency, and what becomes of the queries, against the rate."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter, PercentFormatter, StrMethodFormatter

from app.tools.simulation.figures import Figures

_BLUES = {"P50": "#9dbfe3", "P99": "#2563a8", "P99.9": "#12365e"}
_LATENCIES: dict[str, Callable[[Figures], float | None]] = {
    "P50": lambda figures: figures.p50_ms,
    "P99": lambda figures: figures.p99_ms,
    "P99.9": lambda figures: figures.p99_9_ms,
}
_ORANGE, _GREEN, _GREY = "#c2571a", "#3b8a4a", "#8a8f98"


def draw(sweep: Sequence[Figures], *, slo_ms: float, title: str, path: Path) -> None:
    """Write it to ``path``, in the format of its suffix. Raises ``ValueError`` for a suffix that is none."""
    figure = Figure(figsize=(8, 6.5), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    rates = [each.rate for each in sweep]
    for name, read in _LATENCIES.items():
        # Where nothing is answered there is no latency, and a gap in the line.
        values = [math.nan if (ms := read(each)) is None else ms for each in sweep]
        upper.plot(rates, values, "o-", color=_BLUES[name], label=name)
    upper.axhline(slo_ms, color=_ORANGE, linestyle="--", label=f"objective, {slo_ms:g} ms")
    upper.set(ylabel="latency of the answered, ms", title=title, yscale="log")
    for set_formatter in (upper.yaxis.set_major_formatter, upper.yaxis.set_minor_formatter):
        set_formatter(LogFormatter())
    upper.legend()
    within = [each.within_slo_share for each in sweep]
    lower.plot(rates, within, "o-", color=_GREEN, label=f"answered within {slo_ms:g} ms")
    lower.plot(rates, [each.row_fill for each in sweep], "o-", color=_GREY, label="row fill")
    refused = [each.rejected_share + each.expired_share for each in sweep]
    lower.plot(rates, refused, "o-", color=_ORANGE, label="rejected or expired")
    lower.yaxis.set_major_formatter(PercentFormatter(1.0))
    lower.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    lower.set(xlabel="queries a second", ylim=(-0.03, 1.03))
    lower.legend(loc="center left")
    figure.savefig(path, dpi=150)
