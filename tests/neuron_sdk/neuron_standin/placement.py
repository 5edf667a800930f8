"""The placement calls, under the names that they have in both generations."""

from __future__ import annotations

import contextlib

import torch

from neuron_standin import loading, runtime


def neuron_cores_context(start_nc: int = -1, nc_count: int = -1) -> contextlib.AbstractContextManager[None]:
    return runtime.placement(start_nc, nc_count)


def multicore_context() -> contextlib.AbstractContextManager[None]:
    return runtime.placement(0, len(runtime.runtime().cores))


def set_neuron_cores(trace: torch.jit.ScriptModule, start_nc: int = -1, nc_count: int = -1) -> None:
    """Unload ``trace`` from where it is and load it there."""
    runtime.check_cores(start_nc, nc_count)
    for owner, name, blob in loading.models_of(trace):
        program = loading.program_of(blob)
        loading.forget(blob)
        loading.place(owner, name, program, start_nc, nc_count)


def set_multicore(trace: torch.jit.ScriptModule) -> None:
    set_neuron_cores(trace, 0, len(runtime.runtime().cores))
