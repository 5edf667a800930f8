"""The machine as files and variables, so that tests can put others in their place."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from app.neuron_devices import DEV, SYSFS

PROC = Path("/proc")
SYS = Path("/sys")


@dataclass(frozen=True, slots=True)
class Host:
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    dev: Path = DEV
    proc: Path = PROC
    sysfs: Path = SYS
    neuron: Path = SYSFS
    python: tuple[int, int] = sys.version_info[:2]

    @staticmethod
    def read(path: Path) -> str:
        """What a file of the kernel says, without the line end; empty where there is none."""
        try:
            return path.read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            return ""
