"""A table that can't be trained on says so at once, with the rows concerned."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.data.table import Row, TableError, digest, read_table, write_table


def table(folder: Path, text: str, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


ROWS = [
    Row("red shoes", "product", "shop", "own", "train", "keyword"),
    Row('where is "my" order, please', "order", "help", "own", "test", "sentence"),
]


@pytest.mark.parametrize("name", ["table.csv", "table.jsonl"])
def test_what_is_written_is_read_back(tmp_path: Path, name: str) -> None:
    written = write_table(ROWS, tmp_path / "new" / name)
    assert read_table(tmp_path / "new" / name) == ROWS
    assert written == digest(tmp_path / "new" / name)


def test_texts_come_back_normalised(tmp_path: Path) -> None:
    (row,) = read_table(table(tmp_path, "text,label\n  Red SHOES?! ,product\n"))
    assert row.text == "red shoes"


def test_columns_may_have_other_names(tmp_path: Path) -> None:
    path = table(tmp_path, '{"q": "red shoes", "intent": 7}\n\n', "table.jsonl")
    assert read_table(path, text_column="q", label_column="intent") == [Row("red shoes", "7")]


def test_an_exact_repeat_is_read_once(tmp_path: Path) -> None:
    assert len(read_table(table(tmp_path, "text,label\nshoes,a\nShoes,a\n"))) == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("text,intent\nshoes,a\n", r"line 2: no column 'label'; the columns are 'text', 'intent'"),
        ("text,label\nshoes\n", r"line 2: no column 'label'"),
        ("text,label\nshoes,a,b\n", r"line 2: more values than columns"),
        ("text,label\n  ,a\nshoes,\nboots,b\n", r"2 rows without a text or a label: line 2: '  '.*; line 3: 'shoes'"),
        ("text,label\n", "holds no rows"),
        ("", "holds no rows"),
        (
            "text,label\ncod,pay\nx,y\nCOD,fish\n",
            r"1 texts carry two labels: 'cod' is pay \(line 2\) and fish \(line 4\)",
        ),
        ("text,label,split\ncod,a,train\nCOD,a,test\n", r"the split leaks, 1 texts .*'cod' is in train and test"),
        ("text,label,split\ncod,a,dev\n", "line 2: split 'dev' is none of train, validation"),
    ],
)
def test_a_bad_csv_is_refused_with_its_rows(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(TableError, match=reason):
        read_table(table(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"text": "a", "label": "b"}\n{"text"\n', "line 2: not JSON"),
        ('["a", "b"]\n', "line 1: not a JSON object"),
        ('{"text": null, "label": "b"}\n', "line 1: no column 'text'"),
    ],
)
def test_a_bad_jsonl_is_refused_with_its_line(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(TableError, match=reason):
        read_table(table(tmp_path, text, "table.jsonl"))


def test_a_long_list_of_bad_rows_is_cut(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"9 rows .*; and 4 more"):
        read_table(table(tmp_path, "text,label\n" + " ,a\n" * 9))


def test_a_missing_file_an_unknown_kind_and_other_encodings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="no such file"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(TableError, match=r"ends in .csv or .jsonl"):
        read_table(table(tmp_path, "text,label\n", "table.tsv"))
    (tmp_path / "latin.csv").write_bytes("text,label\ncafé,a\n".encode("latin-1"))
    with pytest.raises(TableError, match="not UTF-8"):
        read_table(tmp_path / "latin.csv")
