"""What tests of several packages share."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tiny_bundle import make_tiny_bundle


@pytest.fixture
def anyio_backend() -> str:
    """What ``@pytest.mark.anyio`` runs an async test on."""
    return "asyncio"


@pytest.fixture(scope="session")
def tiny_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle that loads, for reading only."""
    return make_tiny_bundle(tmp_path_factory.mktemp("bundles") / "tiny")


@pytest.fixture
def copy_bundle(tiny_bundle: Path, tmp_path: Path) -> Callable[[], Path]:
    """Makes a copy of ``tiny_bundle`` that the test may damage."""

    def copy() -> Path:
        return shutil.copytree(tiny_bundle, tmp_path / "bundle")

    return copy
