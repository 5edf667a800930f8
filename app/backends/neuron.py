"""Inferentia 1: ``torch-neuron`` 1.13.1, the frozen SDK that the reference system ran on."""

from __future__ import annotations

from pathlib import Path

from app.backends.neuron_backend import Binding, NeuronBackend
from app.bundle import TargetManifest
from app.neuron_sdk import SDKS


def make_inf1_backend(directory: Path, target: TargetManifest, *, span: int = 1) -> NeuronBackend:
    """Raises ``BackendError`` for an artefact that this generation can't run."""
    return NeuronBackend(directory, target, SDKS["inf1"], _bind, span=span)


def _bind() -> Binding:
    import torch
    import torch_neuron  # also registers neuron::forward, without which nothing compiled can be loaded

    data_parallel = torch.neuron.DataParallel  # type: ignore[attr-defined]  # which torch_neuron adds
    return Binding(torch, torch_neuron.experimental.neuron_cores_context, data_parallel)
