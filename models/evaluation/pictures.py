"""Pictures for the model card: where labels are mixed up, whether confidence holds, what abstaining buys."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix

from models.evaluation.intervals import share
from models.evaluation.judged import Judged
from models.evaluation.reliability import calibration_error, coverage_curve, reliability

_BLUE, _ORANGE, _GREY = "#2563a8", "#c2571a", "#8a8f98"
# The accuracy of the few most confident answers jumps with each of them.
_LEAST_COVERAGE = 0.1
# Cells of a larger matrix would have no room for their numbers.
_MOST_NUMBERED = 20


def draw(judged: Judged, is_sure: NDArray[np.bool_], folder: Path) -> list[Path]:
    """Write ``confusion.png``, ``reliability.png`` and ``coverage.png`` into ``folder``, which is there."""
    figures = {
        "confusion": confusion_figure(judged),
        "reliability": reliability_figure(judged),
        "coverage": coverage_figure(judged, is_sure),
    }
    paths = []
    for name, figure in figures.items():
        paths.append(folder / f"{name}.png")
        figure.savefig(paths[-1], dpi=150)
    return paths


def confusion_figure(judged: Judged) -> Figure:
    """Rows are the truth; colour is the share of the row, numbers are queries."""
    places = [at for at in range(len(judged.labels)) if np.any(judged.truth == at) or np.any(judged.predicted == at)]
    matrix = confusion_matrix(judged.truth, judged.predicted, labels=places)
    shares = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    side = min(24.0, max(5.0, 2.8 + 0.62 * len(places)))
    figure = Figure(figsize=(side + 0.8, side), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    figure.colorbar(image, label="share of the label's queries", shrink=0.8)
    names = [judged.labels[at] for at in places]
    size = 9 if len(names) <= _MOST_NUMBERED else 5
    axes.set_xticks(range(len(names)), names, rotation=45, ha="right", rotation_mode="anchor", fontsize=size)
    axes.set_yticks(range(len(names)), names, fontsize=size)
    axes.set(xlabel="answer", ylabel="label", title=f"{np.mean(judged.is_right):.1%} of {len(judged):,} queries right")
    if len(names) <= _MOST_NUMBERED:
        for (row, column), count in np.ndenumerate(matrix):
            if count:
                colour = "white" if shares[row, column] > 0.5 else "black"
                axes.text(column, row, f"{count:,}", ha="center", va="center", color=colour, fontsize=8)
    return figure


def reliability_figure(judged: Judged) -> Figure:
    """Accuracy over confidence, intents beside groups, with where the queries are below."""
    figure = Figure(figsize=(9.5, 5.2), layout="constrained")
    upper, lower = figure.subplots(2, 2, sharex=True, height_ratios=[3, 1])
    sides = (
        ("intent", judged.confidence, judged.is_right),
        ("group", judged.group_probabilities.max(axis=1), judged.group_is_right),
    )
    for top, bottom, (name, confidence, is_right) in zip(upper, lower, sides, strict=True):
        _draw_reliability(top, bottom, name, confidence, is_right)
    return figure


def _draw_reliability(
    top: Axes, bottom: Axes, name: str, confidence: NDArray[np.floating], is_right: NDArray[np.bool_]
) -> None:
    bins = reliability(confidence, is_right)
    at, heights = [each["confidence"] for each in bins], [each["accuracy"] for each in bins]
    intervals = [share(round(each["accuracy"] * each["n"]), each["n"]) for each in bins]
    below = [height - each["low"] for height, each in zip(heights, intervals, strict=True)]
    above = [each["high"] - height for height, each in zip(heights, intervals, strict=True)]
    top.plot([0, 1], [0, 1], color=_GREY, linestyle="--", linewidth=1, label="as it should be")
    # No line between the points: bins with few queries would draw a zigzag that means nothing.
    top.errorbar(
        at, heights, np.maximum([below, above], 0), fmt="o", color=_BLUE, capsize=2, label="measured, 95 % interval"
    )
    top.set(xlim=(0, 1), ylim=(0, 1.03), ylabel="accuracy", title=f"{name}: ECE {calibration_error(bins):.3f}")
    top.grid(alpha=0.3)
    top.legend(loc="lower right", fontsize=9)
    width = bins[0]["to"] - bins[0]["from"]
    bottom.bar([each["from"] for each in bins], [each["n"] for each in bins], width, align="edge", color=_GREY)
    bottom.set(xlabel=f"confidence of the {name}", ylabel="queries", yscale="log")


def coverage_figure(judged: Judged, is_sure: NDArray[np.bool_]) -> Figure:
    """Accuracy of what is answered, the more is abstained from to the left; a dot where the model's thresholds are."""
    figure = Figure(figsize=(7.5, 4.6), layout="constrained")
    axes = figure.subplots()
    sides = (
        ("intent", judged.confidence, judged.is_right, _BLUE, "-"),
        ("group", judged.group_probabilities.max(axis=1), judged.group_is_right, _ORANGE, "--"),
    )
    lowest = 1.0
    for name, confidence, is_right, colour, line in sides:
        _, coverage, accuracy = coverage_curve(confidence, is_right)
        axes.plot(coverage, accuracy, line, color=colour, label=name)
        lowest = min(lowest, float(accuracy[coverage >= _LEAST_COVERAGE].min()))
        if name == "intent" and is_sure.any():
            point = float(is_sure.mean()), float(is_right[is_sure].mean())
            axes.plot(*point, "o", color=colour)
            axes.annotate(
                f"by its thresholds:\n{point[0]:.1%} answered, {point[1]:.1%} right",
                point,
                xytext=(-12, -14),
                textcoords="offset points",
                ha="right",
                va="top",
                fontsize=9,
            )
    axes.set(
        xlabel="share of queries answered, the most confident first",
        ylabel="accuracy of the answers",
        xlim=(_LEAST_COVERAGE, 1.005),
        ylim=(max(0.0, lowest - 0.05 * (1.2 - lowest)), 1.003),
    )
    axes.grid(alpha=0.3)
    axes.legend(loc="lower left", frameon=False)
    return figure
