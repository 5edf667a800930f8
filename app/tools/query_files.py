"""Files of queries: a line each (txt), one column of a table (csv, tsv), or one member of an object a line (jsonl).

Every tool that takes queries reads them here, so that a file means the same to all of them.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from io import TextIOWrapper
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, get_args

import orjson

Format = Literal["txt", "csv", "tsv", "jsonl"]
FORMATS: tuple[Format, ...] = get_args(Format)
# Where nobody names the column or member: the first of these that is there.
USUAL_COLUMNS = ("query", "text")


class QueryFileError(ValueError):
    """Queries that can't be read; the message names the file, the line and what was found there."""


class Row(NamedTuple):
    text: str  # "" where a table's cell is empty or an object's member null
    record: Mapping[str, Any]  # the whole row or object; nothing of a plain line


def format_of(path: Path) -> Format:
    """By the suffix; a path without one (a pipe, as in ``<(cut -f2 log)``) holds lines of text."""
    suffix = path.suffix.lower().removeprefix(".") or "txt"
    for known in FORMATS:
        if suffix == known:
            return known
    raise QueryFileError(f"{path}: don't know {path.suffix}; use {', '.join(f'.{known}' for known in FORMATS)}")


def read_file(path: Path, *, input_format: Format | None = None, column: str | None = None) -> Iterator[Row]:
    """The rows of a file in their order, one at a time. ``column`` doesn't matter to lines of text."""
    read_as = input_format or format_of(path)
    try:
        with path.open("rb") as file:
            yield from read_stream(file, str(path), input_format=read_as, column=column)
    except OSError as error:
        raise QueryFileError(f"{path}: {error.strerror}") from error


def read_stream(file: BinaryIO, name: str, *, input_format: Format, column: str | None = None) -> Iterator[Row]:
    """As ``read_file``, from what is open already and called ``name``; it stays open."""
    # Undecodable bytes come through as lone surrogates, so that _lines can say in which line they are.
    text = TextIOWrapper(file, encoding="utf-8-sig", errors="surrogateescape", newline="")
    wanted = (column,) if column else USUAL_COLUMNS
    readers: dict[Format, Callable[[], Iterator[Row]]] = {
        "txt": lambda: (Row(line.rstrip("\r\n"), {}) for line in _lines(text, name)),
        "csv": lambda: _table(_lines(text, name), name, ",", wanted),
        "tsv": lambda: _table(_lines(text, name), name, "\t", wanted),
        "jsonl": lambda: _objects(_lines(text, name), name, wanted),
    }
    try:
        yield from readers[input_format]()
    finally:
        text.detach()


def _lines(text: Iterable[str], name: str) -> Iterator[str]:
    for number, line in enumerate(text, 1):
        try:
            line.encode()
        except UnicodeEncodeError as error:
            byte = ord(line[error.start]) - 0xDC00
            raise QueryFileError(f"{name}, line {number}: can't be read: byte 0x{byte:02x} is not UTF-8") from None
        yield line


def _table(lines: Iterator[str], name: str, delimiter: str, wanted: tuple[str, ...]) -> Iterator[Row]:
    reader = csv.DictReader(lines, delimiter=delimiter)
    try:
        column = _column(reader.fieldnames or (), wanted, f"{name}, line 1")
        for record in reader:
            yield Row(record[column] or "", record)
    except csv.Error as error:
        raise QueryFileError(f"{name}, line {reader.line_num + 1}: can't be read: {error}") from None


def _objects(lines: Iterator[str], name: str, wanted: tuple[str, ...]) -> Iterator[Row]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        place = f"{name}, line {number}"
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise QueryFileError(f"{place}: not JSON: {error}") from None
        if not isinstance(record, dict):
            raise QueryFileError(f"{place}: not a JSON object: {_shown(record)}")
        member = _column(record, wanted, place)
        text = record[member]
        if not isinstance(text, str | None):
            raise QueryFileError(f"{place}: {member!r} is no text: {_shown(text)}")
        yield Row(text or "", record)


def _column(columns: Collection[str], wanted: tuple[str, ...], place: str) -> str:
    for name in wanted:
        if name in columns:
            return name
    missing = " or ".join(repr(name) for name in wanted)
    raise QueryFileError(f"{place}: no column {missing}; it has {', '.join(columns) or 'none'}")


def _shown(value: object) -> str:
    text = orjson.dumps(value).decode()
    return text if len(text) <= 60 else f"{text[:59]}…"
