"""``query-intent prepare``: what the table promises, on the real data sets where they are at hand."""

from __future__ import annotations

import os
import random
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from click.testing import CliRunner

from models.data.probe import LIMIT, probe
from models.data.sources import SOURCES
from models.data.style import family_of
from models.data.table import SPLITS, Row, read_table, write_table
from models.labels import LABELS, OUTSIDE_LABEL
from models.prepare import HELP_CAP, build, command

SEED = 17
DATA = os.environ.get("QUERY_INTENT_DATA", "")
needs_data = pytest.mark.skipif(not DATA, reason="QUERY_INTENT_DATA does not name the folder of raw data sets")
HELD_OUT_SOURCES = {
    "hint3", "wands", "esci", "esci_log", "esci_conversational", "chorus", "webshop_queries", "hwu_media", "films",
    "clinc_oos",
}  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The table as the command writes it, and what it says."""
    out = tmp_path_factory.mktemp("prepared") / "intent.jsonl"
    result = CliRunner().invoke(command, ["--data", DATA, "--out", str(out), "--seed", str(SEED)])
    assert result.exit_code == 0, result.output
    return out, result.output


@pytest.fixture(scope="module")
def table(run: tuple[Path, str]) -> list[Row]:
    return read_table(run[0])


@needs_data
def test_every_label_is_trained_on_in_both_styles(table: list[Row]) -> None:
    counts = Counter((row.label, row.style) for row in table if row.split == "train")
    for label in LABELS:
        assert min(counts[label.name, "keyword"], counts[label.name, "sentence"]) >= 0.3 * HELP_CAP, label.name


@needs_data
def test_style_alone_does_not_tell_the_groups_apart(table: list[Row]) -> None:
    assert probe([row for row in table if row.split == "train"]) <= LIMIT


@needs_data
def test_a_held_out_source_is_never_trained_on(table: list[Row]) -> None:
    trained = {row.source for row in table if row.split in ("train", "validation")}
    assert not {source.removesuffix("_carried") for source in trained} & HELD_OUT_SOURCES
    assert {row.source for row in table if row.split in ("development", "test")} == HELD_OUT_SOURCES | {"nq"}


@needs_data
def test_no_text_lies_in_two_splits_and_no_tested_one_is_trained_on_in_other_words(table: list[Row]) -> None:
    splits = defaultdict(set)
    for row in table:
        splits[row.text].add(row.split)
    assert {len(names) for names in splits.values()} == {1}
    tested = {family_of(row.text) for row in table if row.split == "test" and row.source != "films"}
    trained = [
        row for row in table if row.split == "train" and row.source in ("own", "webshop_goals", "nq", "clinc_other")
    ]
    close = [row.text for row in trained if family_of(row.text) in tested]
    assert len(close) <= 0.01 * len(trained)  # a carrier that family_of does not know


@needs_data
def test_every_group_is_tested_by_a_source_it_was_not_trained_on(table: list[Row]) -> None:
    assert {row.group for row in table if row.split == "test"} == {label.group for label in LABELS}
    assert sum(row.split == "test" and row.label == "product_search" for row in table) >= 3000


@needs_data
def test_the_same_seed_makes_the_same_table(table: list[Row]) -> None:
    assert build(Path(DATA), SEED)[0] == table


@needs_data
def test_texts_outside_every_label_are_for_training_alone(table: list[Row]) -> None:
    outside = [row for row in table if row.label == OUTSIDE_LABEL]
    assert {row.split for row in outside} == {"train"}
    assert {row.source for row in outside} == {"foreign_words", "random_keys"}


@needs_data
def test_a_published_set_is_written_with_its_own_splits(tmp_path: Path) -> None:
    out = tmp_path / "snips.csv"
    result = CliRunner().invoke(command, ["--data", DATA, "--set", "snips", "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert "7 labels, train 12829, validation 687, test 695" in result.output
    assert {row.split for row in read_table(out)} == {"train", "validation", "test"}


@needs_data
def test_no_offensive_row_is_left(table: list[Row]) -> None:
    texts = " ".join(row.text for row in table if row.group == "help")
    assert "fuck" not in texts
    assert "bloody" not in texts


@needs_data
def test_the_command_says_what_is_in_the_table(run: tuple[Path, str]) -> None:
    out, said = run
    assert "style-only probe" in said
    assert all(split in said for split in SPLITS)
    again = CliRunner().invoke(command, ["--probe", str(out)])
    assert again.exit_code == 0, again.output


def test_missing_raw_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "SHA256SUMS").write_text("00  hint3/curekart_test.csv\n", encoding="utf-8")
    result = CliRunner().invoke(command, ["--data", str(tmp_path)])
    assert result.exit_code == 1
    assert "hint3/curekart_test.csv: missing" in result.output
    assert "wands/query.csv: not listed" in result.output


def test_no_folder_is_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QUERY_INTENT_DATA", raising=False)
    result = CliRunner().invoke(command, [])
    assert result.exit_code == 2
    assert "--data FOLDER or QUERY_INTENT_DATA" in result.output


def test_a_table_that_style_sorts_is_refused(tmp_path: Path) -> None:
    rows = [Row(f"thing number{n}", "a", "product") for n in range(50)] + [
        Row(f"who is person {n}", "b", "other") for n in range(50)
    ]
    write_table(rows, tmp_path / "bad.csv")
    result = CliRunner().invoke(command, ["--probe", str(tmp_path / "bad.csv")])
    assert result.exit_code == 1
    assert "over 0.50" in result.output
    write_table([Row("a", "b")], tmp_path / "one.csv")
    assert "at least two groups" in CliRunner().invoke(command, ["--probe", str(tmp_path / "one.csv")]).output


def test_generated_rows_lose_their_few_order_numbers_and_offensive_wording(tmp_path: Path) -> None:
    header = "utterance,intent,entity_type,entity_value,start_offset,end_offset,category,tags\n"
    lines = [f"where is order 555{tag},track_order,order_id,555,0,0,ORDER,B{tag}" for tag in ("", "W")]
    for name in ("train", "dev", "test"):
        (tmp_path / f"{name}.csv").write_text(header + "\n".join(lines) + "\n", encoding="utf-8")
    found = list(SOURCES["bitext_customer_service"].read(tmp_path, random.Random(1)))
    assert {example.label for example in found} == {"order_tracking"}
    assert not any("555w" in example.text for example in found)
    assert {example.family for example in found} == {"order"}
    assert len({example.text for example in found}) > 1
