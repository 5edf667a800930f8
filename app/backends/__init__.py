"""Engines behind one protocol (``base.py``). Only an engine's own module imports it, and only when it is chosen."""

from __future__ import annotations

from pathlib import Path

from app.backends.base import Backend
from app.bundle import TargetManifest


def make_backend(name: str, bundle: Path, target: TargetManifest, *, labels: int, null_ms: float) -> Backend:
    """The backend of a target. Raises ``BackendError`` when its engine isn't installed."""
    if name == "null":
        from app.backends.null import NullBackend

        return NullBackend(labels=labels, milliseconds=null_ms)
    if name == "cpu":
        from app.backends.cpu import CpuBackend

        return CpuBackend(bundle / name, target)
    if name == "torch":
        from app.backends.torch import TorchBackend

        return TorchBackend(bundle / name, target)
    raise AssertionError(f"target {name!r} has no backend. This is a bug.")
