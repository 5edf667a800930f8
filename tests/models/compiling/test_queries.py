"""Files of queries are read by their ending; what can't be read is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.compiling.queries import QueriesError, read_labelled, read_queries
from models.data.table import TableError


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_lines_are_normalised_and_repeats_and_blanks_left_out(tmp_path: Path) -> None:
    path = write(tmp_path, "queries.txt", "Red Lamp\n\n red  lamp?\r\nWHERE is my order?\n")
    assert read_queries(path, max_tokens=32) == ["red lamp", "where is my order"]


def test_csv_has_them_in_its_column(tmp_path: Path) -> None:
    path = write(tmp_path, "queries.csv", 'id,query\n1,"lamp, red"\n2,song\n')
    assert read_queries(path, column="query", max_tokens=32) == ["lamp, red", "song"]


def test_jsonl_has_them_in_its_member(tmp_path: Path) -> None:
    path = write(tmp_path, "queries.jsonl", '{"text": "lamp"}\n\n{"text": "song"}\n')
    assert read_queries(path, max_tokens=32) == ["lamp", "song"]


def test_tsv_is_a_table_too(tmp_path: Path) -> None:
    path = write(tmp_path, "queries.tsv", "split\ttext\ntrain\tlamp, red\ntest\tsong\n")
    assert read_queries(path, max_tokens=32, split="train") == ["lamp, red"]


def test_split_takes_the_training_rows_or_the_others(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", "text,split\nlamp,train\nsong,test\nrefund,validation\n")
    assert read_queries(path, max_tokens=32, split="train") == ["lamp"]
    assert read_queries(path, max_tokens=32, split="other") == ["song", "refund"]
    assert read_queries(path, max_tokens=32) == ["lamp", "song", "refund"]


def test_split_doesn_t_matter_where_the_file_has_none(tmp_path: Path) -> None:
    path = write(tmp_path, "queries.txt", "lamp\n")
    assert read_queries(path, max_tokens=32, split="train") == read_queries(path, max_tokens=32, split="other")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("q.txt", "\n \n", "holds no queries"),
        ("q.csv", "id\n1\n", "line 1: no column 'query' or 'text'; it has id"),
        ("q.jsonl", '{"text": "lamp"}\n{"text": \n', "line 2: not JSON"),
        ("q.jsonl", '["lamp"]\n', "line 1: not a JSON object"),
        ("q.jsonl", '{"id": "1"}\n', "line 1: no column 'query' or 'text'; it has id"),
    ],
)
def test_what_can_t_be_read_is_named(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(QueriesError, match=message):
        read_queries(write(tmp_path, name, text), max_tokens=32)


def test_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "q.txt"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(QueriesError, match=r"q\.txt, line 1: can't be read"):
        read_queries(path, max_tokens=32)


LABELS = ["product", "media"]


ROWS = ("Lamp,product,train", "Song!,media,validation", "hola,outside,validation", "film,media,test")


@pytest.mark.parametrize(
    ("more", "expected"), [((), [("song", "media")]), (("Mug,product,development",), [("mug", "product")])]
)
def test_labelled_queries_are_those_that_a_model_s_own_confidence_is_fitted_on(
    tmp_path: Path, more: tuple[str, ...], expected: list[tuple[str, str]]
) -> None:
    path = write(tmp_path, "t.csv", "\n".join(["text,label,split", *ROWS, *more]))
    assert read_labelled(path, LABELS, max_tokens=32) == expected


def test_labelled_queries_of_a_table_without_splits_are_all(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", "query,label\nlamp,product\nsong,media\n")
    assert read_labelled(path, LABELS, column="query", max_tokens=32) == [("lamp", "product"), ("song", "media")]


def test_a_file_without_labels_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="no column 'label'"):
        read_labelled(write(tmp_path, "t.csv", "text\nlamp\n"), LABELS, max_tokens=32)
    with pytest.raises(TableError, match=r"ends in \.csv or \.jsonl"):
        read_labelled(write(tmp_path, "q.txt", "lamp\n"), LABELS, max_tokens=32)
