"""A bundle in the making: written beside its place and moved there whole, or not at all."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.bundle import MANIFEST
from app.errors import BundleError


@contextmanager
def draft(place: Path) -> Iterator[Path]:
    """A copy of the bundle at ``place``, or an empty folder where there is none; it takes that place in the end.

    When the block raises instead, ``place`` is as it was. Raises ``BundleError`` when something else is there.
    """
    if place.exists() and not (place / MANIFEST).is_file() and (not place.is_dir() or any(place.iterdir())):
        raise BundleError(f"{place}: is no bundle (it has no {MANIFEST}); choose another folder")
    place.parent.mkdir(parents=True, exist_ok=True)
    # Beside it, since only a move within one file system is a single step.
    workshop = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
    try:
        folder = workshop / "bundle"
        if place.exists():
            shutil.copytree(place, folder)
        else:
            folder.mkdir()
        yield folder
        _replace(place, folder, workshop / "replaced")
    finally:
        shutil.rmtree(workshop)


def _replace(place: Path, folder: Path, replaced: Path) -> None:
    if not place.exists():
        folder.rename(place)
        return
    place.rename(replaced)
    try:
        folder.rename(place)
    except OSError:
        replaced.rename(place)
        raise
