"""Recorded traffic: when requests came and, where the file says so, which queries they brought."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from app.tools.arrivals import NS_PER_S
from app.tools.query_files import USUAL_COLUMNS, QueryFileError, format_of, read_file

TIME_COLUMN = "time"


@dataclass(frozen=True, slots=True)
class Trace:
    """Offsets from the first request in ns, ascending, and the query of each, or None where the file has none."""

    offsets_ns: NDArray[np.int64]
    queries: list[str] | None


def read_trace(path: Path, query_column: str | None = None, *, until_s: float | None = None) -> Trace:
    """From a .txt of one time a line, or a .csv or .tsv with the column ``time``; times are seconds since any moment.

    Without ``query_column``, a column ``query`` or ``text`` is used where there is one. Rows may be out of order. With
    ``until_s``, what came later than that after the first request is left out.
    Raises ``QueryFileError`` for what is no such file.
    """
    if format_of(path) == "jsonl":
        raise QueryFileError(f"{path}: times are read from .txt, .csv or .tsv")
    rows = list(read_file(path, column=TIME_COLUMN))
    if not rows:
        raise QueryFileError(f"{path} holds no time")
    times_s = np.array([_seconds(row.text, f"{path}, row {number}") for number, row in enumerate(rows, 1)])
    times_s -= times_s.min()
    order = np.argsort(times_s, kind="stable")[: None if until_s is None else np.count_nonzero(times_s < until_s)]
    columns = rows[0].record
    column = query_column or next((name for name in USUAL_COLUMNS if name in columns), None)
    if query_column and query_column not in columns:
        raise QueryFileError(f"{path}: no column {query_column!r}; it has {', '.join(columns) or 'none'}")
    return Trace(
        (times_s[order] * NS_PER_S).astype(np.int64),
        [(rows[place].record[column] or "").strip() for place in order] if column else None,
    )


def _seconds(text: str, place: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds):
        raise QueryFileError(f"{place}: {text[:60]!r} is no number of seconds")
    return seconds
