"""A draft takes its place whole or leaves it as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.errors import BundleError
from models.compiling.draft import draft


def contents(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def break_off(place: Path) -> None:
    with draft(place) as folder:
        (folder / "bundle.json").write_text("half")
        raise RuntimeError("broken")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A bundle's place, among other things in the same folder."""
    (tmp_path / "bundles").mkdir()
    return tmp_path / "bundles" / "tiny"


def test_new_place_gets_what_was_drafted(place: Path) -> None:
    with draft(place) as folder:
        (folder / "bundle.json").write_text("new")
    assert contents(place.parent) == {"tiny/bundle.json": "new"}


def test_bundle_is_replaced_with_what_was_added_to_it(place: Path) -> None:
    place.mkdir()
    (place / "bundle.json").write_text("old")
    with draft(place) as folder:
        (folder / "cpu").mkdir()
        (folder / "cpu" / "target.json").write_text("added")
    assert contents(place.parent) == {"tiny/bundle.json": "old", "tiny/cpu/target.json": "added"}


def test_failed_draft_leaves_nothing(place: Path) -> None:
    with pytest.raises(RuntimeError, match="broken"):
        break_off(place)
    assert list(place.parent.iterdir()) == []


def test_failed_draft_leaves_the_bundle_as_it_was(place: Path) -> None:
    place.mkdir()
    (place / "bundle.json").write_text("old")
    with pytest.raises(RuntimeError, match="broken"):
        break_off(place)
    assert contents(place.parent) == {"tiny/bundle.json": "old"}


def test_folder_of_something_else_is_refused_and_kept(place: Path) -> None:
    place.mkdir()
    (place / "thesis.txt").write_text("years of work")
    with pytest.raises(BundleError, match="is no bundle"), draft(place):
        pass
    assert contents(place.parent) == {"tiny/thesis.txt": "years of work"}


def test_empty_folder_is_a_place(place: Path) -> None:
    place.mkdir()
    with draft(place) as folder:
        (folder / "bundle.json").write_text("new")
    assert contents(place) == {"bundle.json": "new"}
