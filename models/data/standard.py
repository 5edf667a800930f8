"""Published intent sets, each with its own splits: they test the training code, as the shop's mix tests the product.

CLINC150 (Larson et al., 2019), BANKING77 (Casanueva et al., 2020), HWU64 (Liu et al., 2019) and SNIPS (Coucke et al.,
2018). A text that is in two splits after normalisation leaves the earlier one, and one that is twice in a split stays
once: of SNIPS 695 test rows are left of 700, of BANKING77 3,079 of 3,080.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from models.data.sources.example import clean, read_csv
from models.data.table import Row

# A set without a validation split of its own gives this share of its training rows, chosen by their text's hash.
VALIDATION_SHARE = 0.05

Labelled = Iterator[tuple[str, str, str]]  # split, text, label


class StandardSet(NamedTuple):
    files: tuple[str, ...]
    read: Callable[[Path], Labelled]


def read_clinc150(folder: Path) -> Labelled:
    """150 intents and out-of-scope queries, whose 100 training rows are a label as in the set's own paper."""
    splits = {"train": "train", "val": "validation", "test": "test"}
    for name, rows in json.loads((folder / "data_full.json").read_text(encoding="utf-8")).items():
        for text, label in rows:
            yield splits[name.removeprefix("oos_")], text, label


def read_banking77(folder: Path) -> Labelled:
    for split in ("train", "test"):
        for row in read_csv(folder / f"{split}.csv"):
            yield split, row["text"], row["category"]


def read_hwu64(folder: Path) -> Labelled:
    for split, file in {"train": "train", "validation": "valid", "test": "test"}.items():
        for row in read_csv(folder / f"{file}.tsv", delimiter="\t"):
            yield split, row["text"], row["label"]


def read_snips(folder: Path) -> Labelled:
    """The 700 rows that the authors call validation are the test set of everybody since."""
    with gzip.open(folder / "train.jsonl.gz", "rt", encoding="utf-8") as train:
        for line in train:
            row = json.loads(line)
            yield "train", row["text"], row["intent"]
    with (folder / "validate.jsonl").open(encoding="utf-8") as test:
        for line in test:
            row = json.loads(line)
            yield "test", row["text"], row["intent"]


STANDARD_SETS = {
    "clinc150": StandardSet(("data_full.json",), read_clinc150),
    "banking77": StandardSet(("train.csv", "test.csv"), read_banking77),
    "hwu64": StandardSet(("train.tsv", "valid.tsv", "test.tsv"), read_hwu64),
    "snips": StandardSet(("train.jsonl.gz", "validate.jsonl"), read_snips),
}


def build_standard(data: Path, name: str) -> tuple[list[Row], dict[str, int]]:
    """The rows of a standard set, and how many were dropped and why."""
    found = [(split, clean(text), label) for split, text, label in STANDARD_SETS[name].read(data / name)]
    if not any(split == "validation" for split, _, _ in found):
        found = [(_drawn(text) if split == "train" else split, text, label) for split, text, label in found]
    # The test's rows come first, so that they are the ones that stay.
    found.sort(key=lambda each: ("test", "validation", "train").index(each[0]))
    rows: dict[str, Row] = {}
    dropped = {"repeats": 0, "texts in a later split too": 0, "texts with another label before": 0}
    for split, text, label in found:
        new = Row(text, label, label, name, split)
        known = rows.setdefault(text, new)
        if known.split != split:
            dropped["texts in a later split too"] += 1
        elif known.label != label:
            dropped["texts with another label before"] += 1
        elif known is not new:
            dropped["repeats"] += 1
    return list(reversed(rows.values())), dropped


def _drawn(text: str) -> str:
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return "validation" if int.from_bytes(digest, "big") / 2**64 < VALIDATION_SHARE else "train"
