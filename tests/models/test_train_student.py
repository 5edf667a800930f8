"""The command that makes a student: a smaller checkpoint that names its teacher, or a reason why there is none."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="training needs torch")
pytest.importorskip("accelerate", reason="training needs accelerate")

from click.testing import CliRunner, Result

from models.checkpoint import load_record, save_record
from models.compiling.source import read_source
from models.data.table import digest
from models.train import command
from models.training.base import load_base
from tests.tiny_teacher import NAMES, rows, save_teacher

FAST = ("--epochs", "2", "--learning-rate", "0.01", "--batch-size", "8", "--precision", "no", "--threads", "1")


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_teacher(tmp_path_factory.mktemp("teacher"))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.csv"
    path.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in rows()), encoding="utf-8")
    return path


def train(table: Path, *options: str | Path) -> Result:
    folder = table.parent
    arguments = ["--table", table, "--out", folder / "student", "--state", folder / "state", *FAST, *options]
    return CliRunner().invoke(command, list(map(str, arguments)))


def test_a_teacher_and_a_table_become_a_smaller_checkpoint_that_names_its_teacher(table: Path, teacher: Path) -> None:
    options = ("--student-layers", "1", "--match-hidden", "1", "--epochs", "12", "--patience", "12")
    result = train(table, "--teacher", teacher, *options)
    assert result.exit_code == 0, result.output
    assert "learned from another table" in result.output
    folder = table.parent / "student"
    record = load_record(folder)
    assert record.lineage.teacher_digest == digest(teacher / "model.safetensors")
    assert (record.lineage.base, record.lineage.kept_layers) == (str(teacher), (0,))
    assert record.quality["validation"]["accuracy"] > 0.8
    assert json.loads((folder / "config.json").read_text())["num_hidden_layers"] == 1
    assert read_source(folder).converted.encoder.config.layers == 1  # it compiles like any other
    vocabularies = [load_base(place, NAMES)[1].get_vocab() for place in (folder, teacher)]
    assert vocabularies[0] == vocabularies[1]


def test_a_teacher_with_other_labels_is_refused_with_the_difference(table: Path, teacher: Path) -> None:
    table.write_text(table.read_text().replace(",media", ",film"), encoding="utf-8")
    result = train(table, "--teacher", teacher, "--student-layers", "1")
    assert result.exit_code == 1
    assert "labels differ from the table's: 'media' only in the teacher, 'film' only in the table" in result.output


def test_a_teacher_with_fewer_layers_is_refused(table: Path, teacher: Path) -> None:
    result = train(table, "--teacher", teacher, "--student-layers", "3")
    assert result.exit_code == 1
    assert "a student of 3 layers: the teacher has 2" in result.output
    assert "rising ones of 0 to 1" in train(table, "--teacher", teacher, "--keep-layers", "1,2").output


def test_a_folder_that_is_no_checkpoint_is_no_teacher(table: Path, tmp_path: Path) -> None:
    assert "not a checkpoint" in train(table, "--teacher", tmp_path / "none", "--student-layers", "1").output


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--student-layers", "1"), "a student takes --teacher and one of"),
        (("--teacher", "t"), "a student takes --teacher and one of"),
        (("--teacher", "t", "--student-layers", "1", "--keep-layers", "0"), "a student takes --teacher and one of"),
        (("--teacher", "t", "--keep-layers", "0;1"), "'0;1' is no list of layers such as 0,2,5"),
        (("--teacher", "t", "--student-layers", "1", "--base", "b"), "leave --base out"),
    ],
)
def test_options_that_contradict_each_other_are_a_wrong_command_line(
    table: Path, options: tuple[str, ...], reason: str
) -> None:
    result = train(table, *options)
    assert result.exit_code == 2
    assert reason in " ".join(result.output.replace("│", " ").split())


def test_a_student_does_not_replace_its_teacher(table: Path, teacher: Path) -> None:
    result = train(table, "--teacher", teacher, "--student-layers", "1", "--out", teacher)
    assert result.exit_code == 2
    assert "--out would replace the teacher" in result.output


def test_a_teacher_of_the_same_table_goes_without_a_remark(table: Path, teacher: Path, tmp_path: Path) -> None:
    same = shutil.copytree(teacher, tmp_path / "teacher")
    record = load_record(same)
    lineage = record.lineage.model_copy(update={"data_digest": digest(table)})
    save_record(same, record.model_copy(update={"lineage": lineage}))
    result = train(table, "--teacher", same, "--keep-layers", "1", "--epochs", "1")
    assert result.exit_code == 0, result.output
    assert "another table" not in result.output
    assert load_record(tmp_path / "student").lineage.kept_layers == (1,)
