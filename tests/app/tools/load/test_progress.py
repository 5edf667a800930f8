"""A person at a terminal sees how the run is going; a pipe gets nothing."""

from __future__ import annotations

import asyncio
import sys
from array import array

import numpy as np
import pytest

from app.tools.arrivals import Span
from app.tools.load import progress
from app.tools.load.outcomes import CLOSED, Outcomes
from app.tools.load.plan import Plan
from app.tools.load.progress import Progress


class Running:
    """Six requests of a plan of ten, whose first two are the warm-up."""

    def __init__(self) -> None:
        self.outcomes = Outcomes(array("q", [0] * 10), first_recorded=2)
        self.sent = 0
        plan = Plan(np.arange(10) * 100_000_000, 0.2, [Span(0.8, 10)])
        self.progress = Progress(lambda: self.sent, self.outcomes, plan)

    def end(self, number: int, status: int, after_ms: float) -> None:
        self.outcomes.end(number, status)
        self.outcomes.ended_ns[number] = round(after_ms * 1e6)


def test_a_line_counts_what_happened_and_has_the_tail_of_the_last_second() -> None:
    running = Running()
    assert running.progress.line() == "warm-up, 0 of 10 sent, 0 answered, 0 failed, nothing answered in the last second"
    running.sent = 1
    running.end(0, 200, after_ms=900)
    assert running.progress.line() == "warm-up, 1 of 10 sent, 1 answered, 0 failed, P99 900.0 ms in the last second"
    running.sent = 6
    running.end(1, 200, after_ms=50)
    running.end(2, CLOSED, after_ms=50)
    assert running.progress.line() == "6 of 10 sent, 2 answered, 1 failed, P99 50.0 ms in the last second"


@pytest.mark.parametrize("is_terminal", [True, False])
def test_lines_are_for_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], is_terminal: bool
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    monkeypatch.setattr(progress, "INTERVAL_S", 0)

    async def watch() -> None:
        with Running().progress:
            await asyncio.sleep(0.02)

    asyncio.run(watch())
    said = capsys.readouterr().err
    assert ("0 of 10 sent" in said) is is_terminal
    assert said.endswith("\r\x1b[K") is is_terminal
