"""The labelled queries that a model is judged on, checked against its labels before anything slow begins."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.data.table import Row, TableError, read_table

Ints = NDArray[np.integer[Any]]

ALL = "all"
_SHOWN = 5
# Upper ends in words: a word or two as one types, the usual keywords, a long description, a sentence.
_LENGTHS = ((1, "1 word"), (3, "2-3 words"), (6, "4-6 words"), (10, "7-10 words"))
_LONGEST = "11 words or more"


@dataclasses.dataclass(frozen=True)
class Labelled:
    """``rows`` and the index of each one's label among the model's; ``out_of_scope`` are texts of a label it lacks."""

    rows: list[Row]
    truth: Ints  # [rows]
    out_of_scope: list[str]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def texts(self) -> list[str]:
        return [row.text for row in self.rows]

    def segments(self) -> dict[str, dict[str, NDArray[np.bool_]]]:
        """Of each kind (source, style, length) the segments, as masks [rows]; a kind that no row has is left out."""
        kinds: Mapping[str, Callable[[Row], str]] = {
            "source": lambda row: row.source,
            "style": lambda row: row.style,
            "length": lambda row: length_of(row.text),
        }
        found = {}
        for kind, of in kinds.items():
            names = np.array([of(row) for row in self.rows])
            present = [*[name for _, name in _LENGTHS], _LONGEST] if kind == "length" else sorted(set(names))
            masks = {str(name): names == name for name in present if name and np.any(names == name)}
            if masks:
                found[kind] = masks
        return found


def length_of(text: str) -> str:
    words = len(text.split())
    return next((name for most, name in _LENGTHS if words <= most), _LONGEST)


def read_labelled(
    path: Path,
    labels: Sequence[str],
    *,
    splits: Sequence[str] = (),
    text_column: str = "text",
    label_column: str = "label",
    max_tokens: int = 32,
    out_of_scope_label: str | None = None,
    sample: int | None = None,
    seed: int = 0,
) -> Labelled:
    """The rows of ``path`` in ``splits``: by default ``test`` where the table has splits, else all; "all" is all.

    Rows with ``out_of_scope_label`` are kept apart when the model has no such label. At most ``sample`` rows are drawn.
    Raises ``TableError`` for whatever is wrong with the table, a split without rows and labels that the model lacks.
    """
    rows = read_table(path, text_column=text_column, label_column=label_column, max_tokens=max_tokens)
    rows = _in_splits(path, rows, splits)
    if sample is not None and sample < len(rows):
        chosen = np.random.default_rng(seed).choice(len(rows), sample, replace=False)
        rows = [rows[place] for place in sorted(chosen)]
    index = {name: place for place, name in enumerate(labels)}
    known = [row for row in rows if row.label in index]
    outside = [row for row in rows if row.label not in index and row.label == out_of_scope_label]
    _refuse_unknown(path, [row for row in rows if row.label not in index and row.label != out_of_scope_label], labels)
    if not known:
        raise TableError(f"{path}: no row has one of the model's labels ({', '.join(labels)})")
    if out_of_scope_label is not None and not any(row.label == out_of_scope_label for row in rows):
        raise TableError(f"{path}: no row has the out-of-scope label {out_of_scope_label!r}")
    return Labelled(known, np.array([index[row.label] for row in known]), [row.text for row in outside])


def _in_splits(path: Path, rows: list[Row], splits: Sequence[str]) -> list[Row]:
    present = list(dict.fromkeys(row.split for row in rows))
    if ALL in splits or (not splits and present == [""]):
        return rows
    wanted = splits or ("test",)
    chosen = [row for row in rows if row.split in wanted]
    if not chosen:
        has = ", ".join(name for name in present if name) or "no splits"
        raise TableError(f"{path}: no rows in the split {' or '.join(wanted)}; it has {has} (--split all takes all)")
    return chosen


def _refuse_unknown(path: Path, rows: Sequence[Row], labels: Sequence[str]) -> None:
    if not rows:
        return
    by_label: dict[str, list[str]] = {}
    for row in rows:
        by_label.setdefault(row.label, []).append(row.text)
    named = "; ".join(
        f"{label!r} ({len(texts)} rows, for example {', '.join(map(repr, texts[:2]))})"
        for label, texts in list(by_label.items())[:_SHOWN]
    )
    rest = f"; and {len(by_label) - _SHOWN} more labels" if len(by_label) > _SHOWN else ""
    raise TableError(
        f"{path}: {len(rows)} rows have labels that the model lacks: {named}{rest}. It has {', '.join(labels)}"
    )
