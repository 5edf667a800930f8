"""The shipped model as other releases of it would be."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from app.bundle import Bundle, write_manifest
from app.settings import SHIPPED_BUNDLE


def of_version(version: str, folder: Path) -> Path:
    return _released_with({"version": version}, folder)


def with_a_wrong_golden_answer(folder: Path) -> Path:
    """Which no replica gives, so that none takes traffic."""
    first, *others = Bundle(SHIPPED_BUNDLE).manifest.golden
    wrong = first.model_copy(update={"probabilities": first.probabilities[::-1]})
    return _released_with({"version": "broken", "golden": [wrong, *others]}, folder)


def _released_with(changes: dict[str, Any], folder: Path) -> Path:
    shutil.copytree(SHIPPED_BUNDLE, folder)
    write_manifest(folder, Bundle(folder).manifest.model_copy(update=changes))
    return folder
