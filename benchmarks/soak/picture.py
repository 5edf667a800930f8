"""Memory, rate and latency over the time of a soak, one above the other; kills are vertical lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

_BLUE, _ORANGE, _GREY = "#2563a8", "#c2571a", "#8a8f98"


def draw(path: Path, report: dict[str, Any]) -> None:
    """The suffix of ``path`` names the format."""
    figure = Figure(figsize=(11, 8), layout="constrained")
    memory, rate, latency = figure.subplots(3, 1, sharex=True)
    slope, plan, slices = report["memory_slope_mb_per_min"], report["plan"], report["slices"]
    figure.suptitle(
        f"Soak of {plan['minutes']:g} min on {plan['target']}, {report['rate_per_s']:,.0f}/s: "
        + ("; ".join(report["wrong"]) or f"{report['sent']:,} requests, none crossed, none unanswered"),
        color=_ORANGE if report["wrong"] else "black",
    )
    memory.plot(report["memory"]["minutes"], report["memory"]["mb"], ".", markersize=3, color=_BLUE)
    memory.set_title("no slope" if slope is None else f"{slope:+.2f} MB/min", loc="right", fontsize=9)
    memory.set(ylabel="PSS of all processes, MB")
    minutes = [seconds / 60 for seconds in slices["seconds"]]
    seconds_a_slice = slices["seconds"][0]
    for name, colour in (("sent", _GREY), ("answered", _BLUE), ("refused", _ORANGE)):
        rate.plot(minutes, [count / seconds_a_slice for count in slices[name]], color=colour, linewidth=1, label=name)
    rate.set(ylabel="requests a second", ylim=(0, None))
    rate.legend(frameon=False, ncols=3)
    for name, colour in (("p99_ms", _ORANGE), ("p50_ms", _BLUE)):
        values = [float("nan") if value is None else value for value in slices[name]]
        latency.plot(minutes, values, color=colour, linewidth=1, label=name[:3].upper())
    latency.set(ylabel="latency of single queries, ms", xlabel="minutes", yscale="log")
    latency.legend(frameon=False, ncols=2)
    for axes in (memory, rate, latency):
        for kill in report["kills"]:
            axes.axvline(kill["at_s"] / 60, color=_GREY, linewidth=0.6, linestyle=":")
    figure.savefig(path, dpi=130)
