"""What compiling shows is what the queries say, whatever brackets are in them."""

from __future__ import annotations

import io

from rich.console import Console

from models.compiling.agreement import Agreement, Disagreement
from models.compiling.summary import Summary


def test_brackets_and_colons_of_a_query_are_neither_markup_nor_emoji() -> None:
    shown = io.StringIO()
    changed = [Disagreement("sofa [/b] 3 seats", "[bold]a", "b :gift:", 0.25)]
    Summary(Console(file=shown, width=200)).agreement(Agreement(7, 6 / 7, 0.3, 0.01, changed))
    assert all(text in shown.getvalue() for text in ("sofa [/b] 3 seats", "[bold]a", "b :gift:", "0.250"))
