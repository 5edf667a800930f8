"""``query-intent evaluate`` on a tiny checkpoint and on the target compiled from it."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

pytest.importorskip("torch", reason="a checkpoint needs torch")
pytest.importorskip("matplotlib", reason="pictures need matplotlib")

from models.compile import command as compile_command
from models.evaluate import command
from tests.tiny_models import WORDS, save_checkpoint

TEXTS = {
    "product": ["lamp", "Desk tent", "mug sofa"],
    "media": ["song", "film novel"],
    "help": ["refund", "parcel cancel"],
}


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint that tells three kinds of words apart, a bundle made of it, and a table of seven right rows."""
    folder = tmp_path_factory.mktemp("evaluate")
    save_checkpoint(folder / "tiny")
    words = [word for words in WORDS.values() for word in words]
    (folder / "words.txt").write_text("\n".join(words))
    (folder / "pairs.txt").write_text("\n".join(f"{one} {other}" for one, other in itertools.pairwise(words)))
    (folder / "golden.txt").write_text("lamp\nsong\nrefund\n")
    files = ("--calibration", "words.txt", "--holdout", "pairs.txt", "--golden", "golden.txt")
    arguments = [str(folder / part) if part.endswith(".txt") else part for part in files]
    model = ["--checkpoint", str(folder / "tiny"), "--bundle", str(folder / "bundle"), "--target", "torch"]
    result = CliRunner().invoke(compile_command, [*model, *arguments, "--buckets", "8,40"])
    assert result.exit_code == 0, result.output
    rows = [f"{text},{label},{label},{label}-shop,test" for label, texts in TEXTS.items() for text in texts]
    (folder / "table.csv").write_text("\n".join(["text,label,group,source,split", *rows, "tent,media,,,train"]) + "\n")
    return folder


def run(workshop: Path, *options: str, model: str = "checkpoint", table: str = "table.csv") -> Result:
    place = {"checkpoint": "tiny", "bundle": "bundle"}[model]
    arguments = [f"--{model}", str(workshop / place), "--table", str(workshop / table), *options]
    return CliRunner().invoke(command, arguments)


def report(result: Result) -> dict[str, Any]:
    assert result.exit_code == 0, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def test_a_checkpoint_is_judged_on_the_test_rows(workshop: Path) -> None:
    result = run(workshop)
    found = report(result)
    assert (found["scores"]["n"], found["scores"]["accuracy"]["value"]) == (7, 1.0)
    assert found["table"]["rows"] == 7
    assert found["model"] == str(workshop / "tiny")
    assert any("temperature 1, even priors" in note for note in found["notes"])
    assert set(found["segments"]) == {"source", "length"}
    assert "False redirects: product queries sent to another group" in result.stderr


def test_a_compiled_target_is_judged_by_the_same_command_with_the_same_scores(workshop: Path) -> None:
    target, checkpoint = report(run(workshop, "--target", "torch", model="bundle")), report(run(workshop))
    assert target["model"] == f"{workshop / 'bundle'}:torch (tiny@1)"
    assert target["scores"]["accuracy"] == checkpoint["scores"]["accuracy"]
    assert target["scores"]["ece"] == pytest.approx(checkpoint["scores"]["ece"], abs=1e-4)


def test_the_same_command_gives_the_same_document(workshop: Path) -> None:
    options = ("--split", "all", "--perturb", "typo", "--perturb", "prefix", "--sample", "6")
    assert report(run(workshop, *options)) == report(run(workshop, *options))


def test_the_document_goes_to_a_file_and_pictures_are_drawn(workshop: Path, tmp_path: Path) -> None:
    result = run(workshop, "--out", str(tmp_path / "report.json"), "--pictures", str(tmp_path / "new" / "pictures"))
    assert (result.exit_code, result.stdout) == (0, "")
    pictures = [Path(path) for path in json.loads((tmp_path / "report.json").read_text())["pictures"]]
    assert [path.name for path in pictures] == ["confusion.png", "reliability.png", "coverage.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pictures)


def test_the_mix_is_estimated_from_a_file_of_queries(workshop: Path, tmp_path: Path) -> None:
    chance = np.random.default_rng(1)
    queries = [*chance.choice(WORDS["product"], 90), *chance.choice(WORDS["help"], 10), "  "]
    (tmp_path / "searches.txt").write_text("\n".join(queries))
    found = report(run(workshop, "--estimate-priors", str(tmp_path / "searches.txt"), "--priors", "estimated"))
    assert found["estimated_priors"]["queries"] == 100
    assert found["estimated_priors"]["groups"]["product"] == pytest.approx(0.9, abs=0.05)
    assert found["priors"] == found["estimated_priors"]["labels"]


def test_groups_of_the_table_that_differ_are_said_and_the_models_count(workshop: Path) -> None:
    (workshop / "regrouped.csv").write_text("text,label,group\nlamp,product,shop\nsong,media,media\n")
    assert (
        "product is in group shop in the table, in product in the model"
        in report(run(workshop, table="regrouped.csv"))["notes"]
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--split", "validation"), "no rows in the split validation; it has test, train"),
        (("--label-column", "intent"), "no column 'intent'"),
        (("--home-group", "shop"), "--home-group shop: the model's groups are product, media, help"),
        (("--thresholds", "0.5,high"), "'0.5,high': numbers with commas between"),
        (("--thresholds", "1.5"), "'1.5': a threshold is from 0 to 1"),
        (("--priors", '{"product": 1}'), "name every label (product, media, help)"),
        (("--priors", "estimated"), "needs the unlabelled queries"),
        (("--out", "no/such/report.json"), "no/such/report.json: no folder"),
        (("--target", "cpu"), "--target is a bundle's"),
        (("--bundle", "somewhere"), "give one of --checkpoint and --bundle"),
    ],
)
def test_what_can_not_be_is_one_line_before_anything_runs(
    workshop: Path, options: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("models.evaluation.report.ask", lambda *_: pytest.fail("the model was asked"))
    result = run(workshop, *options)
    assert result.exit_code in (1, 2)
    assert message in result.output
    assert "Traceback" not in result.output


def test_labels_that_the_model_lacks_are_named_with_rows(workshop: Path) -> None:
    (workshop / "other.csv").write_text("text,label\nlamp,product\nhola,spanish\n")
    result = run(workshop, table="other.csv")
    assert result.exit_code == 1
    assert "1 rows have labels that the model lacks: 'spanish' (1 rows, for example 'hola')" in result.output


def test_a_target_that_the_bundle_lacks_is_named_with_what_makes_it(workshop: Path) -> None:
    result = run(workshop, "--target", "cpu", model="bundle")
    assert result.exit_code == 1
    assert "make it with: query-intent compile --target cpu" in result.output
