"""Overrides: what a merchandiser's table says, when it holds, and what happens when it is wrong."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import date
from pathlib import Path

import pytest

from app.errors import SettingsError
from app.overrides import Overrides
from app.ranking import Ranked

GROUPS: Mapping[str, str] = {"product_search": "product_search", "order_tracking": "help"}
TODAY = date(2026, 12, 24)


class Calendar:
    def __init__(self) -> None:
        self.day = TODAY

    def __call__(self) -> date:
        return self.day


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines).replace("|", "\t") + "\n", encoding="utf-8")
    return path


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "overrides.tsv"


def read(path: Path, today: Calendar | None = None) -> Overrides:
    return Overrides(path, groups=GROUPS, max_tokens=32, today=today or Calendar())


class TestAnswers:
    def test_a_query_of_the_table_gets_its_intent_and_the_bundles_group_with_confidence_1(self, table: Path) -> None:
        overrides = read(write(table, "query|intent", "my parcels|order_tracking"))
        assert overrides.get("my parcels") == Ranked([("order_tracking", 1.0)], [("help", 1.0)])
        assert overrides.get("my parcel") is None

    def test_an_intent_that_the_bundle_does_not_know_brings_its_own_group(self, table: Path) -> None:
        overrides = read(write(table, "query|intent|group", "gift cards|navigational|gift_cards"))
        assert overrides.get("gift cards") == Ranked([("navigational", 1.0)], [("gift_cards", 1.0)])

    def test_queries_are_compared_in_the_form_that_the_model_sees(self, table: Path) -> None:
        overrides = read(write(table, "query|intent", "  Prime  DAY! |product_search"))
        assert overrides.get("prime day") is not None

    def test_a_spreadsheets_byte_order_mark_and_quotes_are_no_trouble(self, table: Path) -> None:
        table.write_bytes('\ufeffquery\tintent\r\n"the" book\tproduct_search\r\n'.encode())
        assert read(table).get('the" book') is not None

    def test_an_empty_table_overrides_nothing(self, table: Path) -> None:
        assert read(write(table, "query|intent")).get("anything") is None


class TestExpiry:
    def test_a_line_holds_on_its_last_day_and_not_after(self, table: Path) -> None:
        calendar = Calendar()
        overrides = read(write(table, "query|intent|expires", "advent|product_search|2026-12-24"), calendar)
        assert overrides.get("advent") is not None
        calendar.day = date(2026, 12, 25)
        overrides.refresh()
        assert overrides.get("advent") is None


class TestRefresh:
    def test_a_changed_file_is_followed(self, table: Path) -> None:
        overrides = read(write(table, "query|intent", "a|product_search"))
        write(table, "query|intent", "another one|order_tracking")
        overrides.refresh()
        assert overrides.get("a") is None
        assert overrides.get("another one") is not None

    def test_a_file_that_became_wrong_is_reported_once_and_the_last_good_one_holds_on(
        self, table: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        overrides = read(write(table, "query|intent", "a|product_search"))
        write(table, "query|intent", "a|no_such_intent")
        with caplog.at_level(logging.ERROR):
            overrides.refresh()
            overrides.refresh()
        assert overrides.get("a") == Ranked([("product_search", 1.0)], [("product_search", 1.0)])
        (record,) = caplog.records
        assert "line 2: 'no_such_intent'" in record.__dict__["why"]

    def test_a_file_that_went_away_holds_on_as_well(self, table: Path) -> None:
        overrides = read(write(table, "query|intent", "a|product_search"))
        table.unlink()
        overrides.refresh()
        assert overrides.get("a") is not None


class TestRefusals:
    @pytest.mark.parametrize(
        ("lines", "complaint"),
        [
            (["query|author"], "the header has no intent"),
            ([""], "the header has no query and no intent"),
            (["query|intent|colour"], "the header has colour; it may have query, intent, group"),
            (["query|intent", " |product_search"], "line 2: the query is blank"),
            (["query|intent", "a|"], "line 2: the intent is blank"),
            (["query|intent", "a|sale"], "line 2: 'sale' is no intent of the bundle: give it a group, or use product"),
            (["query|intent", "a|product_search|x"], "line 2: more fields than the header has"),
            (["query|intent", "a|product_search", "A!|order_tracking"], "line 3: 'a' is on line 2 already"),
            (["query|intent|expires", "a|product_search|24.12.2026"], "line 2: expires is '24.12.2026', not a day as"),
        ],
    )
    def test_what_is_wrong_is_named_with_its_line(self, table: Path, lines: list[str], complaint: str) -> None:
        with pytest.raises(SettingsError) as refusal:
            read(write(table, *lines))
        assert str(refusal.value).startswith(f"overrides {table}: ")
        assert complaint in str(refusal.value)

    def test_every_wrong_line_is_named_at_once(self, table: Path) -> None:
        with pytest.raises(SettingsError, match=r"line 2: .*; line 4: "):
            read(write(table, "query|intent", "|product_search", "fine|product_search", "a|"))

    def test_a_file_that_is_not_there_is_named(self, table: Path) -> None:
        with pytest.raises(SettingsError, match=r"overrides\.tsv: No such file"):
            read(table)
