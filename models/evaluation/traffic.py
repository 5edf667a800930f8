"""Unlabelled queries as they came: how often each, normalised as serving normalises them."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import click

from app.text import normalise
from app.tools.classify import read_queries


def read_traffic(path: Path, *, column: str | None, max_tokens: int) -> Counter[str]:
    """The distinct queries of a .txt, .csv, .tsv or .jsonl file and how often each occurs; blank ones don't count.

    Raises ``click.ClickException`` naming the file, line or column at fault.
    """
    with ExitStack() as stack:
        try:
            queries = Counter(normalise(text, max_tokens=max_tokens) for text in read_queries(path, column, stack))
        except UnicodeDecodeError as error:
            raise click.ClickException(f"{path}: not UTF-8: {error}") from None
    del queries[""]
    if not queries:
        raise click.ClickException(f"{path}: holds no queries")
    return queries
