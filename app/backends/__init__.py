"""Engines behind one protocol (``base.py``). Only an engine's own module imports it, and only when it is chosen."""

from __future__ import annotations

from pathlib import Path

from app.backends.base import Backend
from app.bundle import TargetManifest


def make_backend(directory: Path, target: TargetManifest, *, labels: int, null_ms: float) -> Backend:
    """The backend of the target in ``directory``. Raises ``BackendError`` when its engine isn't installed."""
    if target.target == "null":
        from app.backends.null import NullBackend

        return NullBackend(labels=labels, milliseconds=null_ms)
    if target.target == "cpu":
        from app.backends.cpu import CpuBackend

        return CpuBackend(directory, target)
    if target.target == "torch":
        from app.backends.torch import TorchBackend

        return TorchBackend(directory, target)
    raise AssertionError(f"target {target.target!r} has no backend. This is a bug.")
