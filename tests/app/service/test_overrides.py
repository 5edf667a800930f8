"""A merchandiser's table in a running service: answered as the table says, followed when it is saved."""

from __future__ import annotations

from pathlib import Path

from tests.app.service.conftest import Start
from tests.app.service.running import wait_until


def test_a_saved_table_is_served_without_a_restart_and_a_broken_one_changes_nothing(
    start: Start, tmp_path: Path
) -> None:
    table = tmp_path / "overrides.tsv"
    table.write_text("query\tintent\tgroup\ngift cards\tnavigational\tgift_cards\n")
    service = start(overrides=table).wait_ready()

    answer = service.classify("Gift cards!", abstain=True).json()
    assert (answer["intent"], answer["group"], answer["confidence"]) == ("navigational", "gift_cards", 1.0)
    assert (answer["source"], answer["intents"]) == ("override", [{"intent": "navigational", "confidence": 1.0}])
    one, other = service.classify_list(["my order", "gift cards"]).json()["results"]
    assert (one["source"], other["source"]) == ("model", "override")
    assert service.classify("launch day").json()["source"] == "model"

    table.write_text("query\tintent\tgroup\nlaunch day\tnavigational\tlaunch\n")
    wait_until(lambda: service.classify("launch day").json()["source"] == "override")
    assert service.classify("gift cards").json()["source"] == "model"

    table.write_text("query\tintent\nlaunch day\tnowhere\n")
    wait_until(lambda: service.records_of("the overrides changed and can't be used; the last good ones hold on"))
    assert service.classify("launch day").json()["source"] == "override"
    assert service.total("requests_total", source="override", status="200") >= 2


def test_a_table_that_is_wrong_stops_the_start_and_names_the_line(start: Start, tmp_path: Path) -> None:
    table = tmp_path / "overrides.tsv"
    table.write_text("query\tintent\ngift cards\tnowhere\n")
    service = start(overrides=table)
    assert service.wait_exit() == 1
    (line,) = service.plain_lines
    assert f"overrides {table}: line 2: 'nowhere' is no intent of the bundle" in line
