"""Folders of one supervisor, named by its pid, so that those of one that was killed can be told and removed."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

PREFIX = "query-intent-"
SHARED_MEMORY = Path("/dev/shm")


def shared_memory() -> Path:
    """Where files stay in memory: metrics are written on every request."""
    return SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK) else disk()


def disk() -> Path:
    """Where there is room: TMPDIR, as a rule /tmp."""
    return Path(tempfile.gettempdir())


@contextlib.contextmanager
def own_folder(parent: Path) -> Iterator[Path]:
    """Made now and removed at the end, as those are of supervisors that did not come to their end."""
    for path in parent.glob(f"{PREFIX}*-*"):
        pid = path.name.removeprefix(PREFIX).partition("-")[0]
        if pid.isdigit() and not Path(f"/proc/{pid}").exists():
            shutil.rmtree(path, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
