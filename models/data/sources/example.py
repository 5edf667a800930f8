"""A labelled example, and how the readers make one."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from app.text import normalise
from models.data.style import Style, family_of, style_of

# The longest query that is looked at; p99 of real queries is 14 words, of full-sentence requests 32.
MAX_TOKENS = 32

HeldOut = Literal["", "development", "test"]


class Example(NamedTuple):
    text: str  # normalised
    label: str
    source: str
    style: Style
    family: str  # rows of one family never lie on both sides of a split
    held_out: HeldOut = ""


def clean(text: str) -> str:
    return normalise(text, max_tokens=MAX_TOKENS)


def example(
    text: str, label: str, source: str, *, style: Style | None = None, family: str = "", held_out: HeldOut = ""
) -> Example:
    text = clean(text)
    return Example(text, label, source, style or style_of(text), family_of(clean(family) or text), held_out)


def read_csv(path: Path, delimiter: str = ",") -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file, delimiter=delimiter)


def read_tsv_gz(path: Path) -> Iterator[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file, delimiter="\t")
