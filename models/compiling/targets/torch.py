"""The ``torch`` target: the graph in float32 as PyTorch exports it, the reference that runs wherever torch does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from app.backends.torch import PROGRAM, TorchBackend
from app.bundle import TargetManifest
from app.packing import RowBuffers
from models.compiling.targets.base import Built
from models.compiling.targets.export import export
from models.encoder import PackedEncoder

CALIBRATES = False
# float32 against float32: only the order of sums differs between machines.
LEAST_TOLERANCE = 1e-4
TOLERANCE_HEADROOM = 3.0


def build(encoder: PackedEncoder, rows: Sequence[RowBuffers], directory: Path) -> Built:
    """Write ``encoder.pt2``. Nothing is quantised, so ``rows`` is empty."""
    torch.export.save(export(encoder), directory / PROGRAM)
    return Built(engine={"torch": torch.__version__}, precision="float32")


def backend(directory: Path, target: TargetManifest) -> TorchBackend:
    return TorchBackend(directory, target)
