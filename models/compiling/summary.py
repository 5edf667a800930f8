"""What compiling tells its user: each step as it begins, then how the target compares with float32."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.table import Table
from rich.text import Text

from models.compiling.agreement import Agreement

# Disagreements shown; the rest is counted.
_SHOWN = 20


class Summary:
    """Writes to standard error, so that standard output stays free for whoever pipes."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False, emoji=False)

    @contextmanager
    def step(self, doing: str) -> Iterator[None]:
        # No live display: NNCF draws progress bars of its own.
        self._console.print(f"{doing} …", markup=False)
        started = time.perf_counter()
        yield
        self._console.print(f"  done in {time.perf_counter() - started:.1f} s", style="dim")

    def note(self, line: str) -> None:
        self._console.print(line, markup=False, soft_wrap=True)

    def notes(self, lines: Sequence[str]) -> None:
        for line in lines:
            self.note(line)

    def agreement(self, found: Agreement) -> None:
        self.note(
            f"against float32 on {found.queries} held-out queries: {found.labels:.2%} of the labels agree, "
            f"|Δp| {found.largest:.4f} at most and {found.mean:.4f} on average"
        )
        if not found.disagreements:
            return
        table = Table("query", "float32", "target", "margin", title="labels that changed", title_justify="left")
        for item in found.disagreements[:_SHOWN]:
            # As Text: in a string "[/b]" would be markup, and ":gift:" an emoji.
            cells = (Text(cell) for cell in (item.query, item.reference, item.target))
            table.add_row(*cells, f"{item.margin:.3f}")
        self._console.print(table)
        if (rest := len(found.disagreements) - _SHOWN) > 0:
            self.note(f"and {rest} more with smaller margins")
