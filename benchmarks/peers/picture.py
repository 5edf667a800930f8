"""The picture: P99 against rate, ours and the peers'. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter

from benchmarks.peers.figures import OBJECTIVES_MS, Figures

_BLUE, _ORANGE, _GREEN, _GREY = "#2563a8", "#c2571a", "#3a7d44", "#8a8f98"


def draw(path: Path, servers: Mapping[str, Mapping[float, Figures]]) -> None:
    """Medians of the rounds as lines, the span of the rounds as bands. The suffix of ``path`` names the format."""
    figure = Figure(figsize=(7.5, 4.8), layout="constrained")
    axes = figure.subplots()
    for (name, rates), colour in zip(servers.items(), (_BLUE, _ORANGE, _GREEN, _GREY), strict=False):
        known = {rate: figures for rate, figures in sorted(rates.items()) if figures["p99_ms"] is not None}
        axes.plot(list(known), [each["p99_ms"] for each in known.values()], color=colour, marker=".", label=name)
        spans = [[p99 for p99 in each["p99_ms_of_each_round"] if p99 is not None] for each in known.values()]
        axes.fill_between(list(known), list(map(min, spans)), list(map(max, spans)), color=colour, alpha=0.15, lw=0)
    for objective_ms in OBJECTIVES_MS:
        axes.axhline(objective_ms, color=_GREY, linestyle="--", linewidth=1)
    axes.set(xlabel="requests a second, Poisson", ylabel="P99 ms, from the intended send", xscale="log", yscale="log")
    axes.set_title("Latency against rate: median and span of the rounds")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(LogFormatter(labelOnlyBase=False))
        axis.set_minor_formatter(LogFormatter(labelOnlyBase=False, minor_thresholds=(2, 0.5)))
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)
