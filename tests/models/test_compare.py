"""``query-intent compare`` on the command line: two tiny checkpoints, one of them retrained to nonsense."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

pytest.importorskip("torch", reason="a checkpoint needs torch")

from safetensors.torch import load_file, save_file

from models.compare import NO_GO, command
from tests.tiny_models import WORDS, save_checkpoint


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``old``, and ``new`` in which media and help have changed places."""
    folder = tmp_path_factory.mktemp("compare")
    save_checkpoint(folder / "old")
    shutil.copytree(folder / "old", folder / "new")
    weights = load_file(folder / "new" / "model.safetensors")
    for name in ("classifier.weight", "classifier.bias"):
        weights[name] = weights[name][[0, 2, 1]].contiguous()
    save_file(weights, folder / "new" / "model.safetensors", metadata={"format": "pt"})
    rows = [f"{word},{label}" for label, words in WORDS.items() for word in words]
    (folder / "table.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    (folder / "searches.csv").write_text("query\n" + "lamp\n" * 95 + "song\n" * 4 + "refund\n")
    return folder


def run(workshop: Path, a: str, b: str, *options: str) -> Result:
    files = [str(workshop / option) if option.endswith(".csv") else option for option in options]
    return CliRunner().invoke(command, [str(workshop / a), str(workshop / b), *files])


def test_a_model_may_take_its_own_place(workshop: Path) -> None:
    result = run(workshop, "old", "old", "--labelled", "table.csv")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert (report["verdict"], report["labelled"]["n"]) == ("go", 24)
    assert report["labelled"]["accuracy"]["p"] == 1.0
    assert result.stderr.endswith("go\n")


def test_a_worse_one_may_not_and_the_exit_code_says_so(workshop: Path, tmp_path: Path) -> None:
    out = tmp_path / "changes.json"
    result = run(workshop, "old", "new", "--labelled", "table.csv", "--queries", "searches.csv", "--out", str(out))
    assert (result.exit_code, result.stdout) == (NO_GO, "")
    report = json.loads(out.read_text())
    assert report["labelled"]["accuracy"]["difference"] == pytest.approx(-16 / 24)
    assert report["traffic"]["group_changes"] == 0.05
    assert report["traffic"]["group_moves"] == {"media → help": 4, "help → media": 1}
    assert [each["query"] for each in report["traffic"]["most_frequent"]] == ["song", "refund"]
    assert len(report["reasons"]) == 2
    assert "no-go when the 95 % interval" in result.stderr


def test_how_much_may_change_is_an_option(workshop: Path) -> None:
    arguments = ("old", "new", "--queries", "searches.csv")
    assert run(workshop, *arguments, "--max-changed", "0.049").exit_code == NO_GO
    assert run(workshop, *arguments, "--max-changed", "0.05").exit_code == 0


def test_the_rule_and_its_exit_code_are_in_the_help() -> None:
    text = CliRunner().invoke(command, ["--help"]).output
    assert f"Exit code {NO_GO}, no-go, when" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("old", "new"), "give --labelled, --queries, or both"),
        (
            ("old", "nowhere", "--labelled", "table.csv"),
            "neither a bundle (bundle.json), BUNDLE:TARGET, nor a checkpoint",
        ),
        (("old", "new", "--labelled", "table.csv", "--label-column", "intent"), "no column 'intent'"),
        (("old", "new", "--queries", "searches.csv", "--queries-column", "text"), "no column 'text'"),
    ],
)
def test_what_can_not_be_compared_is_not_taken_for_no_go(
    workshop: Path, arguments: tuple[str, ...], message: str
) -> None:
    result = run(workshop, *arguments)
    assert result.exit_code in (1, 2)
    assert message in result.output
