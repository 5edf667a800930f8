"""Pictures are drawn of whatever a run or a search left behind."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="pictures need matplotlib")

from app.tools.load.picture import draw_run, draw_search
from tests.app.tools.load.recordings import recording


def trial(rate: float, outcome: str, p99: float | None) -> dict[str, object]:
    return {"rate": rate, "outcome": outcome, "latency_ms": {"p99": p99}}


@pytest.mark.parametrize(
    "run",
    [
        recording([3.0]),
        recording([3.0 + n / 100 for n in range(1000)], sources=["model", "cache"] * 500),
        recording([9.0] * 50, [503] * 50),
        recording([9.0] * 50, lag_ms=[5] * 50),
    ],
    ids=["one request", "two sources", "nothing answered", "void"],
)
def test_a_run_is_drawn(tmp_path: Path, run) -> None:  # type: ignore[no-untyped-def]
    draw_run(tmp_path / "run.svg", run, 10)
    drawn = (tmp_path / "run.svg").read_text()
    assert drawn.startswith("<?xml")


@pytest.mark.parametrize("found", [None, 200.0])
def test_a_search_is_drawn(tmp_path: Path, found: float | None) -> None:
    trials = [trial(100, "met", 4), trial(200, "met", 9), trial(400, "missed", 80), trial(800, "void", None)]
    draw_search(tmp_path / "search.png", trials, 10, found)
    assert (tmp_path / "search.png").read_bytes().startswith(b"\x89PNG")
