"""Conflicts leave, splits do not leak, caps level labels, styles and sources."""

from __future__ import annotations

from collections import Counter
from typing import Any

from models.data.mix import VALIDATION_SHARE, assign_splits, cap, drop_conflicts, share_out
from models.data.sources.example import Example
from models.data.style import family_of


def example(text: str, label: str = "a", **changes: Any) -> Example:
    return Example(text, label, "s", "keyword", family_of(text))._replace(**changes)


def test_a_text_with_two_labels_is_dropped_from_both() -> None:
    kept, conflicts = drop_conflicts([example("cod", "fish"), example("cod", "payment"), example("eel", "fish")])
    assert [found.text for found in kept] == ["eel"]
    assert conflicts == ["cod"]


def test_of_repeats_the_most_held_out_one_stays() -> None:
    held_out: list[Any] = ["", "test", "development"]
    for order in (held_out, held_out[::-1]):
        kept, conflicts = drop_conflicts([example("eel", held_out=where) for where in order])
        assert [found.held_out for found in kept] == ["test"]
        assert conflicts == []


def test_the_family_of_a_held_out_row_is_never_trained_on() -> None:
    rows = [example("red shoes 7", held_out="test"), example("shoe red 9"), example("blue shoes")]
    assigned, dropped = assign_splits(rows, seed=1)
    assert [found.text for found, _ in assigned] == ["red shoes 7", "blue shoes"]
    assert dropped == 1


def test_a_family_stays_on_one_side_and_more_data_never_moves_it() -> None:
    rows = [example(f"{noun}{plural}", family=noun) for noun in map(str, range(500)) for plural in ("", "s")]
    assigned, _ = assign_splits(rows, seed=1)
    sides = {(found.family, split) for found, split in assigned}
    assert len(sides) == 500
    shares = Counter(split for _, split in sides)
    assert abs(shares["validation"] / 500 - VALIDATION_SHARE) < 0.04
    assert {(found.family, split) for found, split in assign_splits(rows[:100], seed=1)[0]} <= sides
    assert assign_splits(rows, seed=2)[0] != assigned


def test_caps_hold_for_each_label_and_half_of_it_is_keywords() -> None:
    rows = [
        (example(f"{style}{source}{number}", style=style, source=source), "train")
        for style in ("keyword", "sentence")
        for source, count in (("rich", 90), ("poor", 5))
        for number in range(count)
    ]
    capped = cap(rows, {"a": 40}, {"a": "g"}, seed=1)
    assert Counter(row.style for row in capped) == {"keyword": 20, "sentence": 20}
    assert Counter(row.source for row in capped) == {"rich": 30, "poor": 10}
    assert {row.group for row in capped} == {"g"}
    assert capped == cap(rows[::1], {"a": 40}, {"a": "g"}, seed=1)


def test_sources_share_alike_until_they_have_no_more() -> None:
    assert share_out({"a": 10, "b": 2, "c": 10}, 12) == {"b": 2, "a": 5, "c": 5}
    assert share_out({"a": 1, "b": 1}, 12) == {"a": 1, "b": 1}
    assert share_out({"a": 5, "b": 5}, 0) == {"a": 0, "b": 0}
    assert share_out({}, 5) == {}
    assert sum(share_out({"a": 7, "b": 7, "c": 7}, 10).values()) == 10


def test_varied_sources_give_more_and_derived_rows_less() -> None:
    shares = share_out({"books": 1000, "a": 1000, "a_carried": 1000}, 540)
    assert shares == {"books": 400, "a": 100, "a_carried": 40}
