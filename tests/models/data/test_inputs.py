"""Raw files are the ones the readers were written for, or each that isn't is named."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from models.data.inputs import InputError, verify_inputs


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = []
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text(name, encoding="utf-8")
        lines.append(f"{hashlib.sha256(name.encode()).hexdigest()}  {name}")
    (tmp_path / "SHA256SUMS").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


def test_the_identity_depends_on_the_files_used_and_not_on_their_order(folder: Path) -> None:
    assert verify_inputs(folder, ["a.csv", "b.csv"]) == verify_inputs(folder, ["b.csv", "a.csv", "a.csv"])
    assert verify_inputs(folder, ["a.csv"]) != verify_inputs(folder, ["b.csv"])


def test_everything_that_is_missing_changed_or_unknown_is_named_at_once(folder: Path) -> None:
    (folder / "a.csv").unlink()
    (folder / "b.csv").write_text("changed", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        verify_inputs(folder, ["a.csv", "b.csv", "c.csv"])
    assert str(caught.value).splitlines()[1:] == [
        "  a.csv: missing",
        "  b.csv: its sha256 differs from the one in SHA256SUMS",
        "  c.csv: not listed in SHA256SUMS",
    ]


def test_a_folder_without_checksums_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no SHA256SUMS"):
        verify_inputs(tmp_path, [])
