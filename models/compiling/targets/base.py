"""What compiling asks of a target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from app.backends.base import Backend
from app.bundle import TargetManifest
from app.packing import RowBuffers
from models.encoder import PackedEncoder


@dataclass(frozen=True, slots=True)
class Built:
    """What a target wrote, for its ``target.json``."""

    engine: Mapping[str, str]  # name -> version
    precision: str
    options: Mapping[str, Any] = field(default_factory=dict)


class Target(Protocol):
    """A module of this package, or an object of one."""

    CALIBRATES: bool  # whether it needs ranges, and so calibration rows
    # How far a golden query's probability may move before a replica is refused: at least this, and this many times
    # what was measured where it was compiled.
    LEAST_TOLERANCE: float
    TOLERANCE_HEADROOM: float

    def build(self, encoder: PackedEncoder, rows: Sequence[RowBuffers], directory: Path) -> Built:
        """Write the target's artefacts into ``directory``, with the ranges that ``rows`` show where it calibrates."""
        ...

    def backend(self, directory: Path, target: TargetManifest) -> Backend:
        """The backend that serves these artefacts."""
        ...
