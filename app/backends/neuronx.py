"""Inferentia 2 and Trainium 1: ``torch-neuronx``, the living SDK."""

from __future__ import annotations

from pathlib import Path

from app.backends.neuron_backend import Binding, NeuronBackend
from app.bundle import TargetManifest
from app.neuron_sdk import SDKS


def make_inf2_backend(directory: Path, target: TargetManifest, *, span: int = 1) -> NeuronBackend:
    """Raises ``BackendError`` for an artefact that this generation can't run."""
    return NeuronBackend(directory, target, SDKS["inf2"], _bind, span=span)


def _bind() -> Binding:
    import torch
    import torch_neuronx

    # The placement API left `experimental` on the way; older releases have it there only.
    home = torch_neuronx if hasattr(torch_neuronx, "neuron_cores_context") else torch_neuronx.experimental
    return Binding(torch, home.neuron_cores_context, torch_neuronx.DataParallel)
