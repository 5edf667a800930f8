"""A short soak on a real service."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

OPTIONS = ("--minutes", "0.2", "--rate", "60", "--texts", "60", "--list-size", "4", "--kill-every-s", "0")


def soak(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.soak", *options], capture_output=True, text=True, timeout=100, check=False
    )


def test_every_request_of_a_mixed_load_is_accounted_for(tmp_path: Path) -> None:
    """F33. Memory of the first seconds says nothing, so it is left out of the verdict here."""
    done = soak(*OPTIONS, "--settle-s", "0", "--out", str(tmp_path))
    report = json.loads((tmp_path / "soak.json").read_text())

    assert {name: report["endings"][name] for name in ("crossed", "undocumented", "unanswered", "lost")} == {
        "crossed": 0,
        "undocumented": 0,
        "unanswered": 0,
        "lost": 0,
    }, report["examples"]
    assert sum(report["endings"].values()) == report["sent"] > 600
    assert set(report["endings_by_kind"]) == {"patient", "list", "hurried", "leaving", "bad"}
    assert set(report["endings_by_kind"]["bad"]) == {"refused"}
    assert not report["errors"]
    assert report["memory"]["mb"]
    assert [sentence for sentence in report["wrong"] if "memory" not in sentence and "patient" not in sentence] == []
    assert done.returncode == bool(report["wrong"])


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [("--minutes", "0", "at least 0.1"), ("--rate", "many", "'many' is no number"), ("--texts", "1", "at least 2")],
)
def test_an_option_out_of_its_range_is_named_with_its_limit(option: str, value: str, said: str) -> None:
    done = soak(option, value)
    assert done.returncode == 2
    assert option in done.stderr
    assert said in done.stderr
