"""Engines behind one protocol (``base.py``). Only an engine's own module imports it, and only when it is chosen."""

from __future__ import annotations

from pathlib import Path

from app.backends.base import Backend
from app.bundle import TargetManifest


def make_backend(directory: Path, target: TargetManifest, *, labels: int, null_ms: float, span: int = 1) -> Backend:
    """The backend of the target in ``directory``; a replica takes ``span`` cores, one row each, where it can.

    Raises ``BackendError`` when its engine isn't installed or can't run what was compiled.
    """
    if target.target == "null":
        from app.backends.null import NullBackend

        return NullBackend(labels=labels, milliseconds=null_ms)
    if target.target == "cpu":
        from app.backends.cpu import CpuBackend

        return CpuBackend(directory, target)
    if target.target == "torch":
        from app.backends.torch import TorchBackend

        return TorchBackend(directory, target)
    if target.target == "inf1":
        from app.backends.neuron import make_inf1_backend

        return make_inf1_backend(directory, target, span=span)
    if target.target == "inf2":
        from app.backends.neuronx import make_inf2_backend

        return make_inf2_backend(directory, target, span=span)
    raise AssertionError(f"target {target.target!r} has no backend. This is a bug.")
