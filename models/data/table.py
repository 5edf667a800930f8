"""The labelled table: the noun that ``prepare`` writes, ``train`` and ``evaluate`` read.

A table is csv or jsonl by its file name. Only a text and a label column are needed; ``prepare`` adds the group, the
source, the split (``train``, ``validation``, ``development``, ``test``) and the style (``keyword``, ``sentence``).
Whatever is wrong with a table is said at once, with the rows concerned, before anything slow begins.
"""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from app.text import normalise

SPLITS = ("train", "validation", "development", "test")
# Rows named in an error: enough to find the pattern, few enough to read.
_SHOWN = 5


class TableError(ValueError):
    """A table that can't be trained or scored on; the message names the rows."""


@dataclasses.dataclass(frozen=True)
class Row:
    text: str
    label: str
    group: str = ""
    source: str = ""
    split: str = ""
    style: str = ""


COLUMNS = tuple(field.name for field in dataclasses.fields(Row))


def write_table(rows: Sequence[Row], path: Path) -> str:
    """Write ``rows`` to ``path`` (.csv or .jsonl) and return the sha256 of the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        if _is_jsonl(path):
            file.writelines(json.dumps(dataclasses.asdict(row), ensure_ascii=False) + "\n" for row in rows)
        else:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(COLUMNS)
            writer.writerows(dataclasses.astuple(row) for row in rows)
    return digest(path)


def digest(path: Path) -> str:
    """The sha256 of a file, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def read_table(
    path: Path, *, text_column: str = "text", label_column: str = "label", max_tokens: int = 32
) -> list[Row]:
    """Read and check a table; texts come back normalised as serving normalises them.

    Raises ``TableError`` for a missing file or column, a broken line, empty texts or labels, an unknown split, a text
    with two labels and a text that lies in two splits. Exact repeats of a row within its split are read once.
    """
    rows: dict[tuple[str, str], Row] = {}
    empty: list[str] = []
    for line, record in _records(path, (text_column, label_column)):
        text = normalise(record[text_column], max_tokens=max_tokens)
        label = record[label_column].strip()
        if not text or not label:
            empty.append(f"line {line}: {record[text_column]!r} → {label!r}")
            continue
        split = record.get("split", "")
        if split and split not in SPLITS:
            raise TableError(f"{path}, line {line}: split {split!r} is none of {', '.join(SPLITS)}")
        rest = {name: record.get(name, "") for name in ("group", "source", "style")}
        row = Row(text=text, label=label, split=split, **rest)
        other = rows.setdefault((text, split), row)
        if other.label != label:
            _refuse_conflicts(path, text_column, label_column, max_tokens)
    if empty:
        raise TableError(f"{path}: {len(empty)} rows without a text or a label: {_some(empty)}")
    if not rows:
        raise TableError(f"{path}: holds no rows")
    result = list(rows.values())
    _refuse_leaks(path, result)
    return result


def _records(path: Path, needed: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """The lines of the file as (line number, column → value), with every column in ``needed`` present."""
    if not path.is_file():
        raise TableError(f"{path}: no such file")
    with path.open(encoding="utf-8-sig", newline="") as file:
        records = _jsonl_records(path, file) if _is_jsonl(path) else _csv_records(path, file)
        try:
            for line, record in records:
                missing = [name for name in needed if record.get(name) is None]
                if missing:
                    raise TableError(
                        f"{path}, line {line}: no column {missing[0]!r}; the columns are {', '.join(map(repr, record))}"
                    )
                yield line, {name: str(value) for name, value in record.items() if value is not None}
        except UnicodeDecodeError as error:
            raise TableError(f"{path}: not UTF-8: {error}") from error


def _csv_records(path: Path, file: Iterable[str]) -> Iterator[tuple[int, dict[str, object]]]:
    reader = csv.DictReader(file)
    try:
        for record in reader:
            if None in record:
                raise TableError(f"{path}, line {reader.line_num}: more values than columns")
            yield reader.line_num, dict(record)
    except csv.Error as error:
        raise TableError(f"{path}, line {reader.line_num}: {error}") from error


def _jsonl_records(path: Path, file: Iterable[str]) -> Iterator[tuple[int, dict[str, object]]]:
    for line, text in enumerate(file, start=1):
        if not text.strip():
            continue
        try:
            record = json.loads(text)
        except json.JSONDecodeError as error:
            raise TableError(f"{path}, line {line}: not JSON: {error}") from error
        if not isinstance(record, dict):
            raise TableError(f"{path}, line {line}: not a JSON object")
        yield line, record


def _refuse_conflicts(path: Path, text_column: str, label_column: str, max_tokens: int) -> None:
    """Read the file again for all the texts that carry two labels, and raise."""
    seen: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for line, record in _records(path, (text_column, label_column)):
        text = normalise(record[text_column], max_tokens=max_tokens)
        seen[text].setdefault(record[label_column].strip(), line)
    conflicts = [
        f"{text!r} is " + " and ".join(f"{label} (line {line})" for label, line in labels.items())
        for text, labels in seen.items()
        if len(labels) > 1
    ]
    raise TableError(f"{path}: {len(conflicts)} texts carry two labels: {_some(conflicts)}")


def _refuse_leaks(path: Path, rows: Sequence[Row]) -> None:
    splits: defaultdict[str, list[str]] = defaultdict(list)
    for row in rows:
        splits[row.text].append(row.split)
    leaks = [f"{text!r} is in {' and '.join(names)}" for text, names in splits.items() if len(names) > 1]
    if leaks:
        raise TableError(f"{path}: the split leaks, {len(leaks)} texts lie in two splits: {_some(leaks)}")


def _some(items: Sequence[str]) -> str:
    shown = "; ".join(items[:_SHOWN])
    return shown if len(items) <= _SHOWN else f"{shown}; and {len(items) - _SHOWN} more"


def _is_jsonl(path: Path) -> bool:
    if path.suffix not in {".csv", ".jsonl"}:
        raise TableError(f"{path}: a table ends in .csv or .jsonl")
    return path.suffix == ".jsonl"
