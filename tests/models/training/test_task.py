"""A table becomes splits and labels, or says why it can't."""

from __future__ import annotations

import pytest

from models.data.table import Row, TableError
from models.labels import LABELS
from models.training.task import OUTSIDE, make_task


def rows(*labels: str, count: int = 20) -> list[Row]:
    return [Row(f"{label} {number}", label) for label in labels for number in range(count)]


def test_a_table_without_splits_loses_the_same_share_of_each_label_to_validation() -> None:
    task = make_task(rows("a", "b"), validation_share=0.1, seed=1)
    assert {name: sorted(split.targets) for name, split in task.splits.items()} == {
        "train": [0] * 18 + [1] * 18,
        "validation": [0, 0, 1, 1],
    }


def test_new_rows_never_move_old_ones() -> None:
    def validation(table: list[Row]) -> set[str]:
        return set(make_task(table, validation_share=0.5, seed=1).splits["validation"].texts)

    few, many = validation(rows("a", "b", count=20)), validation(rows("a", "b", count=21))
    assert len(few - many) <= 2


def test_the_splits_of_the_table_are_kept() -> None:
    table = [Row("x", "a", split="train"), Row("y", "b", split="train"), Row("z", "a", split="validation"),
             Row("w", "b", source="shop", split="test")]  # fmt: skip
    task = make_task(table, validation_share=0.1, seed=1)
    assert list(task.splits) == ["train", "validation", "test"]
    assert (task.splits["test"].texts, task.splits["test"].targets, task.splits["test"].sources) == (
        ["w"],
        [1],
        ["shop"],
    )


def test_the_shop_s_labels_come_in_their_own_order_with_definitions() -> None:
    task = make_task(rows(*(label.name for label in reversed(LABELS))), validation_share=0.1, seed=1)
    assert [tuple(label.model_dump().values()) for label in task.labels] == list(LABELS)


def test_other_labels_are_sorted_and_each_its_own_group_unless_the_table_says() -> None:
    assert make_task(rows("b", "a"), validation_share=0.1, seed=1).groups == {"a": "a", "b": "b"}
    grouped = [row.__class__(row.text, row.label, "g" if row.label != "c" else "h") for row in rows("a", "b", "c")]
    assert make_task(grouped, validation_share=0.1, seed=1).groups == {"a": "g", "b": "g", "c": "h"}


def test_rows_outside_every_label_are_learned_from_and_not_judged_on() -> None:
    table = [
        Row("x", "a", split="train"), Row("y", "b", split="train"), Row("asdf", "none", "none", split="train"),
        Row("z", "a", split="validation"), Row("qwer", "none", "none", split="validation"),
    ]  # fmt: skip
    task = make_task(table, validation_share=0.1, seed=1, out_of_scope_label="none")
    assert task.names == ["a", "b"]
    assert (task.splits["train"].texts, task.splits["train"].targets) == (["x", "y", "asdf"], [0, 1, OUTSIDE])
    assert task.splits["validation"].texts == ["z"]


def test_the_answer_of_who_knows_nothing_is_even_over_groups() -> None:
    grouped = [row.__class__(row.text, row.label, "g" if row.label != "c" else "h") for row in rows("a", "b", "c")]
    task = make_task(grouped, validation_share=0.1, seed=1)

    assert task.unsure() == [0.25, 0.25, 0.5]
    assert task.unsure(task.labels[2].group) == pytest.approx([0.2, 0.2, 0.6])


def test_a_table_without_splits_keeps_all_rows_outside_for_training() -> None:
    task = make_task(rows("a", "b", "none"), validation_share=0.1, seed=1, out_of_scope_label="none")
    assert task.splits["train"].targets.count(OUTSIDE) == 20


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (rows("a", "b"), "no training row has the out-of-scope label 'none'"),
        ([*rows("a"), Row("x", "none", split="")], "only one label, 'a'"),
        (rows("none"), "every row has the out-of-scope label 'none'"),
        (
            [Row("x", "none", split="train"), Row("y", "a", split="validation"), Row("z", "b", split="validation")],
            "no training row has a label but 'none'",
        ),
    ],
)
def test_rows_outside_that_teach_nothing_are_refused(table: list[Row], reason: str) -> None:
    with pytest.raises(TableError, match=reason):
        make_task(table, validation_share=0.1, seed=1, out_of_scope_label="none")


def test_other_rows_or_another_reading_of_them_are_another_task() -> None:
    one, other = (make_task(rows("a", "b"), validation_share=share, seed=1).digest for share in (0.1, 0.2))
    assert one == make_task(rows("a", "b"), validation_share=0.1, seed=1).digest != other


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (rows("a"), "only one label, 'a'"),
        ([Row("x", "a", split="train"), Row("y", "b", split="validation")], "only one label in train, 'a'"),
        (
            [Row("x", "a", "g"), Row("y", "a", "h"), *rows("b")],
            "label 'a' is in two groups, 'g' and 'h', for example 'y'",
        ),
        ([Row("x", "a", split="train"), Row("y", "b")], "1 rows have no split while others do, for example \\['y'\\]"),
        ([Row("x", "a", split="train"), Row("y", "b", split="train")], "no rows in the split 'validation'.* train 2"),
        (rows("a", "b", count=1), "no rows in the split 'validation'"),
        (
            [Row("x", "a", split="train"), Row("y", "b", split="train"), Row("z", "c", split="validation")],
            r"validation has labels that train lacks: \{'c': 1\}, for example \['z'\]",
        ),
    ],
)
def test_a_table_that_can_not_be_learned_is_refused_with_examples(table: list[Row], reason: str) -> None:
    with pytest.raises(TableError, match=reason):
        make_task(table, validation_share=0.1, seed=1)
