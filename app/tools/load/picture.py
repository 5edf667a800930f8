"""Pictures of a run and of a search. Needs matplotlib, which nothing else of the load tester does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter

from app.tools.arrivals import NS_PER_S
from app.tools.load.outcomes import Recording
from app.tools.load.report import VOID_RULE, lag

_BLUE, _ORANGE, _GREEN, _GREY = "#2563a8", "#c2571a", "#3a7d44", "#8a8f98"
MAX_SLICES = 120
LEAST_A_SLICE = 100  # requests; fewer have no P99 worth drawing


def draw_run(path: Path, run: Recording, slo_p99_ms: float | None) -> None:
    """Percentiles over time, and how many requests were done by when. The suffix of ``path`` names the format."""
    figure = Figure(figsize=(11, 4.5), layout="constrained")
    over_time, cumulative = figure.subplots(1, 2)
    if lag(run.lag_ns)["void"]:
        figure.suptitle(f"VOID: {VOID_RULE}", color=_ORANGE)
    _draw_over_time(over_time, run)
    _draw_cumulative(cumulative, run)
    if slo_p99_ms is not None:
        over_time.axhline(slo_p99_ms, color=_GREY, linestyle="--", linewidth=1)
        cumulative.axvline(slo_p99_ms, color=_GREY, linestyle="--", linewidth=1, label=f"objective, {slo_p99_ms:g} ms")
        cumulative.legend(frameon=False)
    figure.savefig(path, dpi=150)


def _draw_over_time(axes: Axes, run: Recording) -> None:
    slices = max(1, min(MAX_SLICES, len(run) // LEAST_A_SLICE))
    edges_s = np.linspace(0, run.planned_s, slices + 1)
    at_s = (run.intended_ns - run.start_ns) / NS_PER_S
    starts = np.searchsorted(at_s, edges_s)
    waited_ms = run.latency_ms
    parts = [
        (middle, waited_ms[start:end])
        for middle, start, end in zip((edges_s[:-1] + edges_s[1:]) / 2, starts[:-1], starts[1:], strict=True)
        if end > start
    ]
    for percentile, colour in ((50, _GREEN), (90, _BLUE), (99, _ORANGE)):
        values = [np.percentile(part, percentile) for _, part in parts]
        axes.plot(
            [middle for middle, _ in parts], values, color=colour, label=f"P{percentile}", marker=".", markersize=3
        )
    axes.set(xlabel="seconds since the start, by intended send", ylabel="ms", title="Latency over time")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)


def _draw_cumulative(axes: Axes, run: Recording) -> None:
    """Shares of all that was scheduled: a curve that ends below 1 leaves out what failed."""
    curves = {"answered": run.is_ok}
    if len(run.source_names) > 2:
        curves |= {name: run.is_ok & (run.source == place) for place, name in enumerate(run.source_names) if name}
    for name, chosen in curves.items():
        latencies_ms = np.sort(run.latency_ms[chosen])
        axes.plot(latencies_ms, np.arange(1, latencies_ms.size + 1) / len(run), label=name, drawstyle="steps-post")
    axes.set(xlabel="ms, from the intended send", ylabel="share of all requests", title="Answered 2xx by then")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(LogFormatter())
    axes.xaxis.set_minor_formatter(LogFormatter())
    axes.set_ylim(0, 1.02)
    axes.legend(frameon=False)


def draw_search(path: Path, trials: Sequence[dict[str, Any]], slo_p99_ms: float, found_rate: float | None) -> None:
    """Each trial's P99 at its rate, and the rate that was found."""
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    for outcome, colour in (("met", _GREEN), ("missed", _ORANGE), ("void", _GREY)):
        chosen = [trial for trial in trials if trial["outcome"] == outcome and trial["latency_ms"]["p99"] is not None]
        rates, tails = [trial["rate"] for trial in chosen], [trial["latency_ms"]["p99"] for trial in chosen]
        axes.scatter(rates, tails, color=colour, s=18, label=outcome)
    axes.axhline(slo_p99_ms, color=_GREY, linestyle="--", linewidth=1, label=f"objective, {slo_p99_ms:g} ms")
    if found_rate is not None:
        axes.axvline(found_rate, color=_BLUE, linewidth=1, label=f"found, {found_rate:,.0f}/s")
    axes.set(xlabel="requests a second", ylabel="P99 ms", title="Trials of the search", xscale="log", yscale="log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(LogFormatter())
        axis.set_minor_formatter(LogFormatter())
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)
