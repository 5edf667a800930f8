"""Where a result comes from: the machine and the command, at the head of every report."""

from __future__ import annotations

import os
import platform
import sys


def provenance(benchmark: str) -> dict[str, str]:
    """``benchmark`` is the module's name after ``benchmarks.``; its arguments are those of this process."""
    return {
        "machine": f"{os.cpu_count()} x {platform.machine()}",
        "command": " ".join([f"python -m benchmarks.{benchmark}", *sys.argv[1:]]),
    }
