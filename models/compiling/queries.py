"""Files of plain queries: a line each (.txt), or one column of a .csv or .jsonl."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

from app.text import normalise


class QueriesError(ValueError):
    """A file of queries that can't be read; the message names file, line or column."""


def read_queries(
    path: Path, *, column: str = "text", max_tokens: int, split: Literal["train", "other"] | None = None
) -> list[str]:
    """The distinct queries of ``path`` in their order, normalised as serving normalises them, but for empty ones.

    Of a table with a column ``split``, ``split="train"`` takes the training rows and ``split="other"`` all the others.
    """
    try:
        wanted = (
            text for text, in_train in _texts(path, column) if split is None or in_train in (None, split == "train")
        )
        queries = dict.fromkeys(normalise(text, max_tokens=max_tokens) for text in wanted)
    except (OSError, UnicodeDecodeError) as error:
        raise QueriesError(f"{path}: can't be read: {error}") from error
    queries.pop("", None)
    if not queries:
        raise QueriesError(f"{path}: holds no queries")
    return list(queries)


def _texts(path: Path, column: str) -> Iterator[tuple[str, bool | None]]:
    """Each text, and whether it is a training row where the file says so."""
    with path.open(encoding="utf-8", newline="") as file:
        if path.suffix not in (".csv", ".jsonl"):
            yield from ((line, None) for line in file)
            return
        for number, record in enumerate(csv.DictReader(file) if path.suffix == ".csv" else _objects(path, file), 1):
            if column not in record:
                raise QueriesError(f"{path}, row {number}: no column {column!r}, only {', '.join(map(str, record))}")
            split = record.get("split")
            yield str(record[column] or ""), (split == "train" if split else None)


def _objects(path: Path, file: Iterable[str]) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            raise QueriesError(f"{path}, line {number}: not JSON: {error}") from error
        if not isinstance(record, dict):
            raise QueriesError(f"{path}, line {number}: not a JSON object")
        yield record
