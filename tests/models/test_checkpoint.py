"""A checkpoint folder is whole, agrees with itself and with this version, or says what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from app.text import NORMALISER_VERSION
from models.checkpoint import FILES, CheckpointError, TrainingRecord, load_record, save_record


def record(**changes: Any) -> TrainingRecord:
    values: dict[str, Any] = {
        "normaliser": NORMALISER_VERSION,
        "max_tokens": 32,
        "labels": [{"name": "a", "definition": "", "group": "a"}, {"name": "b", "definition": "", "group": "b"}],
        "temperature": 1.25,
        "label_priors": {"a": 0.25, "b": 0.75},
        "abstain_threshold": 0.4,
        "quality": {"validation": {"n": 2, "accuracy": 1.0}},
        "lineage": {
            "base": "x", "commit": "", "data_digest": "0" * 64, "seed": 1, "versions": {"torch": "2"},
            "command": "train",
        },
    }  # fmt: skip
    return TrainingRecord.model_validate(values | changes)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in FILES:
        (tmp_path / name).write_text("{}", encoding="utf-8")
    (tmp_path / "config.json").write_text(json.dumps({"id2label": {"0": "a", "1": "b"}}), encoding="utf-8")
    save_record(tmp_path, record())
    return tmp_path


def test_a_record_comes_back_as_it_was_saved(folder: Path) -> None:
    assert load_record(folder) == record()


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(CheckpointError, match=f"{name} missing"):
        load_record(folder)


def test_labels_in_another_order_than_the_logits_are_refused(folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps({"id2label": {"0": "b", "1": "a"}}), encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"\['a', 'b'\], config.json \['b', 'a'\]"):
        load_record(folder)


def test_a_checkpoint_of_other_normalisation_rules_is_refused(folder: Path) -> None:
    save_record(folder, record(normaliser=NORMALISER_VERSION + 1))
    with pytest.raises(CheckpointError, match="train again"):
        load_record(folder)


def test_a_broken_record_names_the_field(folder: Path) -> None:
    broken = record().model_dump() | {"temperature": -1}
    (folder / "training.json").write_text(json.dumps(broken), encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"training.json: temperature: .* greater than 0"):
        load_record(folder)


def test_a_broken_configuration_is_named(folder: Path) -> None:
    (folder / "config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"config.json: KeyError"):
        load_record(folder)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"label_priors": {"a": 1.0}}, "different labels"),
        ({"label_priors": {"a": 0.5, "b": 0.6}}, "sum to 1.1000"),
        ({"labels": [{"name": "a", "group": "a"}, {"name": "a", "group": "b"}]}, "named twice"),
        ({"labels": [{"name": "a", "group": "a"}]}, "at least 2"),
        ({"abstain_threshold": 1.5}, "less than or equal to 1"),
        ({"max_tokens": 2}, "greater than or equal to 3"),
        ({"surprise": 1}, "Extra inputs"),
    ],
)
def test_a_record_that_contradicts_itself_is_refused(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        record(**changes)
