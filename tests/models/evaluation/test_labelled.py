"""Which rows of a table a model is judged on, and what is refused before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.data.table import TableError
from models.evaluation.labelled import length_of, read_labelled

LABELS = ["product", "help"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.csv"
    path.write_text(
        "text,label,split\noak desk,product,train\nLamp!,product,test\nmy order,help,test\nrefund,help,validation\n"
        "capital of peru,oos,test\n"
    )
    return path


def test_the_test_split_is_judged_unless_another_is_asked_for(table: Path) -> None:
    found = read_labelled(table, LABELS, out_of_scope_label="oos")
    assert (found.texts, found.truth.tolist()) == (["lamp", "my order"], [0, 1])
    assert read_labelled(table, LABELS, splits=["train", "validation"]).texts == ["oak desk", "refund"]
    assert len(read_labelled(table, LABELS, splits=["all"], out_of_scope_label="oos")) == 4


def test_a_table_without_splits_is_judged_whole(tmp_path: Path) -> None:
    (tmp_path / "table.jsonl").write_text('{"q": "lamp", "intent": "product"}\n')
    found = read_labelled(tmp_path / "table.jsonl", LABELS, text_column="q", label_column="intent")
    assert found.texts == ["lamp"]


def test_rows_of_the_out_of_scope_label_are_kept_apart_when_the_model_lacks_it(table: Path) -> None:
    assert read_labelled(table, LABELS, out_of_scope_label="oos").out_of_scope == ["capital of peru"]
    known = read_labelled(table, [*LABELS, "oos"], out_of_scope_label="oos")
    assert (known.truth.tolist(), known.out_of_scope) == ([0, 1, 2], [])


def test_a_sample_is_the_same_for_the_same_seed(table: Path) -> None:
    one, two = (read_labelled(table, LABELS, splits=["train", "validation"], sample=1, seed=4) for _ in range(2))
    assert len(one) == 1
    assert one.texts == two.texts


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        (LABELS, {}, r"1 rows have labels that the model lacks: 'oos' \(1 rows, for example 'capital of peru'\)"),
        (LABELS, {"splits": ["development"]}, "no rows in the split development; it has train, test, validation"),
        (["product", "oos"], {}, r"1 rows have labels that the model lacks: 'help' \(1 rows, for example 'my order'\)"),
        (LABELS, {"splits": ["train"], "out_of_scope_label": "oos"}, "no row has the out-of-scope label 'oos'"),
        (LABELS, {"label_column": "intent"}, "line 2: no column 'intent'; the columns are 'text', 'label', 'split'"),
    ],
)
def test_what_can_not_be_judged_is_named_with_its_rows(
    table: Path, labels: list[str], options: dict[str, object], message: str
) -> None:
    with pytest.raises(TableError, match=message):
        read_labelled(table, labels, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("words", "name"),
    [
        *[(1, "1 word"), (2, "2-3 words"), (3, "2-3 words"), (4, "4-6 words"), (6, "4-6 words"), (7, "7-10 words")],
        *[(10, "7-10 words"), (11, "11 words or more"), (40, "11 words or more")],
    ],
)
def test_length_is_in_words(words: int, name: str) -> None:
    assert length_of(" ".join(["word"] * words)) == name
