"""Unlabelled queries as they came: how often each, normalised as serving normalises them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from app.text import normalise
from app.tools.query_files import QueryFileError, read_file


def read_traffic(path: Path, *, column: str | None, max_tokens: int) -> Counter[str]:
    """The distinct queries of a .txt, .csv, .tsv or .jsonl file and how often each occurs; blank ones don't count.

    Raises ``click.ClickException`` naming the file, line or column at fault.
    """
    try:
        rows = read_file(path, column=column)
        queries = Counter(normalise(row.text, max_tokens=max_tokens) for row in rows)
    except QueryFileError as error:
        raise click.ClickException(str(error)) from None
    del queries[""]
    if not queries:
        raise click.ClickException(f"{path}: holds no queries")
    return queries
