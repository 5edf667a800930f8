"""How a run is going, in one line of a terminal that is written over each second."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from types import TracebackType

import click
import numpy as np

from app.tools.load.outcomes import PENDING, Outcomes
from app.tools.load.plan import Plan

INTERVAL_S = 1.0


class Progress:
    """While inside, shows it on standard error; nothing where that is no terminal."""

    def __init__(self, sent: Callable[[], int], outcomes: Outcomes, plan: Plan) -> None:
        self._sent = sent
        self._outcomes = outcomes
        self._plan = plan
        self._sent_before = 0
        self._task: asyncio.Task[None] | None = None

    def __enter__(self) -> None:
        if sys.stderr.isatty():
            self._task = asyncio.get_running_loop().create_task(self._show_task())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._task:
            self._task.cancel()
            click.echo("\r\x1b[K", nl=False, err=True)

    async def _show_task(self) -> None:
        while True:
            await asyncio.sleep(INTERVAL_S)
            click.echo(f"\r{self.line()}\x1b[K", nl=False, err=True)

    def line(self) -> str:
        """What has happened so far, and the P99 of what was sent since the last line and has ended."""
        sent, outcomes = self._sent(), self._outcomes
        latest = slice(self._sent_before, sent)
        self._sent_before = sent
        has_ended = np.frombuffer(outcomes.status, np.int16)[latest] != PENDING
        waited_ns = (
            np.frombuffer(outcomes.ended_ns, np.int64)[latest] - np.frombuffer(outcomes.intended_ns, np.int64)[latest]
        )[has_ended]
        p99 = f"P99 {np.percentile(waited_ns, 99) / 1e6:.1f} ms" if waited_ns.size else "nothing answered"
        phase = "warm-up, " if sent < self._plan.first_recorded else ""
        return (
            f"{phase}{sent:,} of {len(self._plan):,} sent, {outcomes.answered:,} answered, {outcomes.failed:,} failed, "
            f"{p99} in the last second"
        )
