"""Files of queries to calibrate and compare with: normalised, each once, and of a table only the wanted split."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from app.text import normalise
from app.tools.query_files import QueryFileError, Row, read_file
from models.compiling.order import LabelledQuery
from models.data.table import read_table

Split = Literal["train", "other"]


class QueriesError(ValueError):
    """A file of queries that can't be read; the message names file, line or column."""


def read_queries(path: Path, *, column: str | None = None, max_tokens: int, split: Split | None = None) -> list[str]:
    """The distinct queries of ``path`` in their order, normalised as serving normalises them, but for empty ones.

    Of a table with a column ``split``, ``split="train"`` takes the training rows and ``split="other"`` all the others.
    """
    try:
        wanted = (row.text for row in read_file(path, column=column) if split is None or _is_in(row, split))
        queries = dict.fromkeys(normalise(text, max_tokens=max_tokens) for text in wanted)
    except QueryFileError as error:
        raise QueriesError(str(error)) from error
    queries.pop("", None)
    if not queries:
        raise QueriesError(f"{path}: holds no queries")
    return list(queries)


def read_labelled(
    path: Path, labels: Sequence[str], *, column: str | None = None, max_tokens: int
) -> list[LabelledQuery]:
    """The rows of a table with one of ``labels``: of the split that confidence is fitted on, or all where none has one.

    Raises ``TableError`` when ``path`` is no table of texts and labels.
    """
    rows = read_table(path, text_column=column or "text", max_tokens=max_tokens)
    splits = {row.split for row in rows}
    wanted = next((split for split in ("development", "validation") if split in splits), "")
    return [LabelledQuery(row.text, row.label) for row in rows if row.split == wanted and row.label in labels]


def _is_in(row: Row, split: Split) -> bool:
    """Also a row that doesn't say where it belongs."""
    own = row.record.get("split")
    return not own or (own == "train") == (split == "train")
