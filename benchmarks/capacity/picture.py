"""The picture: what one instance holds, a bar between what the two edges say. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter

from benchmarks.capacity.chips import EDGES, ENCODERS, INSTANCES
from benchmarks.capacity.search import Capacity, Host, Service

_SHAPES = {
    (False, 128): "#c9cdd3",
    (False, 32): "#8a8f98",
    (True, 32): "#9dbfe3",
    (True, 64): "#2563a8",
    (True, 128): "#12365e",
}
_LIMITS = 400, 150_000
_TICKS = 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000
_ORANGE = "#c2571a"
_BAR = 0.16


def draw(path: Path, found: Mapping[Service, Capacity], host: Host, *, rate: float) -> None:
    """The suffix of ``path`` names the format. ``rate`` is what is asked for, as a line."""
    figure = Figure(figsize=(9, 7), layout="constrained")
    all_axes = figure.subplots(len(INSTANCES), 1)
    for axes, instance in zip(all_axes, INSTANCES, strict=True):
        for place, ((packed, tokens), colour) in enumerate(_SHAPES.items()):
            for number, encoder in enumerate(ENCODERS):
                rates = [found[Service(instance, encoder, tokens, packed, edge, host)].rate for edge in EDGES]
                low, high = min(rates), max(rates)
                at = number + (place - (len(_SHAPES) - 1) / 2) * _BAR
                label = f"{'packed' if packed else 'padded'}, rows of {tokens}" if number == 0 else None
                # Where both edges say the same it is a line and not a bar.
                axes.bar(at, high - low, _BAR * 0.9, bottom=low, color=colour, edgecolor=colour, label=label)
        axes.axhline(rate, color=_ORANGE, linestyle="--", linewidth=1, label=f"{rate:,.0f}/s")
        axes.set_xticks(range(len(ENCODERS)), [encoder.name for encoder in ENCODERS])
        axes.set(yscale="log", ylabel="queries a second, P99 within 10 ms", title=f"One {instance.name}, simulated")
        axes.set(ylim=_LIMITS)
        axes.set_yticks(_TICKS)
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axes.grid(axis="y", alpha=0.3)
    all_axes[0].legend(frameon=False, fontsize=8, ncols=2)
    figure.savefig(path, dpi=150)
