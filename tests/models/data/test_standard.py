"""The published sets keep their own splits, and never a text in two of them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from models.data.standard import build_standard
from models.data.table import Row, read_table, write_table


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """CLINC150's file with a handful of rows."""
    splits = {
        "train": [["Where is my bag", "lost_luggage"], ["set an alarm", "alarm"], ["wake me at 7", "alarm"]],
        "val": [["alarm at noon", "alarm"], ["wake me at 7", "alarm"]],
        "test": [["where is my bag?", "lost_luggage"], ["alarm please", "alarm"], ["alarm  please", "alarm"]],
        "oos_train": [["who am i", "oos"]],
        "oos_val": [["what is love", "oos"]],
        "oos_test": [["are you there", "oos"]],
    }
    (tmp_path / "clinc150").mkdir()
    (tmp_path / "clinc150" / "data_full.json").write_text(json.dumps(splits), encoding="utf-8")
    return tmp_path


def test_a_text_in_two_splits_stays_in_the_later_one(data: Path) -> None:
    rows, dropped = build_standard(data, "clinc150")
    assert {(row.text, row.split) for row in rows} == {
        ("set an alarm", "train"), ("who am i", "train"),
        ("wake me at 7", "validation"), ("alarm at noon", "validation"), ("what is love", "validation"),
        ("where is my bag", "test"), ("alarm please", "test"), ("are you there", "test"),
    }  # fmt: skip
    assert dropped == {"repeats": 1, "texts in a later split too": 2, "texts with another label before": 0}


def test_the_table_can_be_read_back_and_says_where_it_is_from(data: Path, tmp_path: Path) -> None:
    rows, _ = build_standard(data, "clinc150")
    write_table(rows, tmp_path / "table.csv")
    assert read_table(tmp_path / "table.csv") == rows
    assert {(row.source, row.group == row.label) for row in rows} == {("clinc150", True)}


def test_a_set_without_a_validation_split_gives_some_of_its_training_rows(tmp_path: Path) -> None:
    folder = tmp_path / "banking77"
    folder.mkdir()
    train = "".join(f"question {number},card\n" for number in range(300))
    (folder / "train.csv").write_text(f"text,category\n{train}", encoding="utf-8")
    (folder / "test.csv").write_text("text,category\nwhere is my card,card\n", encoding="utf-8")

    def split_of(rows: list[Row]) -> dict[str, str]:
        return {row.text: row.split for row in rows}

    first = split_of(build_standard(tmp_path, "banking77")[0])
    assert Counter(first.values())["test"] == 1
    assert 5 <= Counter(first.values())["validation"] <= 30
    (folder / "train.csv").write_text(f"text,category\n{train}one more,card\n", encoding="utf-8")
    again = split_of(build_standard(tmp_path, "banking77")[0])
    assert {text: again[text] for text in first} == first  # a new row moves no other


def test_of_a_text_with_two_labels_in_a_split_the_first_stays(tmp_path: Path) -> None:
    folder = tmp_path / "hwu64"
    folder.mkdir()
    for name in ("train", "valid", "test"):
        (folder / f"{name}.tsv").write_text(f"text\tlabel\n{name} it\tmute\n{name} it\tstop\n", encoding="utf-8")
    rows, dropped = build_standard(tmp_path, "hwu64")
    assert {(row.text, row.label, row.split) for row in rows} == {
        ("train it", "mute", "train"), ("valid it", "mute", "validation"), ("test it", "mute", "test"),
    }  # fmt: skip
    assert dropped["texts with another label before"] == 3
