"""What tests of several packages share."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.neuron import neuron_host as neuron_host
from tests.tiny_bundle import make_tiny_bundle

# The same examples every time, and no limit in wall-clock time.
settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")


@pytest.fixture
def anyio_backend() -> str:
    """What ``@pytest.mark.anyio`` runs an async test on."""
    return "asyncio"


@pytest.fixture
def loggers_as_they_were() -> Iterator[None]:
    """Undoes ``configure_logging``, which is for a process of its own."""
    root, access = logging.getLogger(), logging.getLogger("uvicorn.access")
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    access.disabled = False
    for name in ("uvicorn", "uvicorn.error"):
        logging.getLogger(name).setLevel(logging.NOTSET)


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
