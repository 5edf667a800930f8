"""The probe sees style only: it sorts groups that differ in style and is at a loss where they don't."""

from __future__ import annotations

from models.data.probe import LIMIT, probe, style_features
from models.data.table import Row


def rows(*templates: tuple[str, str]) -> list[Row]:
    return [Row(template.format(number), group, group) for template, group in templates for number in range(60)]


def test_groups_of_different_styles_are_sorted_without_reading_them() -> None:
    table = rows(("i want item{0:x} please", "product"), ("what is thing{0:x}?", "other"))
    assert probe(table) > 0.95 > LIMIT


def test_groups_in_the_same_styles_can_not_be_told_apart() -> None:
    table = rows(
        ("i want item{0:x}", "product"),
        ("what is item{0:x}", "product"),
        ("i want song{0:x}", "media"),
        ("what is song{0:x}", "media"),
    )
    assert probe(table) < 0.65


def test_features_say_how_not_what() -> None:
    assert style_features("where is my order 7") == style_features("who ate my apple 123")
    assert style_features("red shoes") == style_features("hip hop")
    assert style_features("red shoes") != style_features("red shoes?")
