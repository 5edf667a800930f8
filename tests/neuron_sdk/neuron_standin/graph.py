"""The compiled graph: one ``neuron::forward`` op that is given the inputs and the model."""

from __future__ import annotations

import threading
import weakref
from typing import Any

import torch

from neuron_standin import artefact, loading
from neuron_standin.artefact import Program
from neuron_standin.core import compute
from neuron_standin.error_text import keep_error_text, remember
from neuron_standin.runtime import unload

_MOST_OUTPUTS = 8
_LIBRARY = torch.library.Library("neuron", "DEF")
_TRACING = threading.local()


def register_ops(name: str) -> None:
    """``neuron::NAME_1`` and so on by number of outputs. A graph of the other SDK stays unknown to this process."""
    for outputs in range(1, _MOST_OUTPUTS + 1):
        returns = "Tensor" if outputs == 1 else f"({', '.join(['Tensor'] * outputs)})"
        _LIBRARY.define(f"{name}_{outputs}(Tensor[] inputs, Tensor model) -> {returns}")
        _LIBRARY.impl(f"{name}_{outputs}", _forward, "CPU")


def _forward(inputs: list[torch.Tensor], model: torch.Tensor) -> Any:
    program = getattr(_TRACING, "program", None)
    try:
        outputs = compute(program, inputs) if program else loading.loaded(model)(inputs)
    except RuntimeError as error:
        remember(error)
        raise
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def compiled_module(
    program: Program, examples: tuple[torch.Tensor, ...], *, op: str, is_tuple: bool
) -> torch.jit.ScriptModule:
    """The graph around ``program``. It goes to a core with its first call, or after saving with ``torch.jit.load``."""
    forward = getattr(torch.ops.neuron, f"{op}_{program.header.outputs}")
    blob = artefact.pack(program)

    class NeuronModule(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("model", blob)

        def forward(self, *inputs: torch.Tensor) -> Any:
            result = forward(list(inputs), self.model)
            return (result,) if is_tuple and isinstance(result, torch.Tensor) else result

    _TRACING.program = program
    try:
        module = torch.jit.trace(NeuronModule(), examples, check_trace=False)
    finally:
        _TRACING.program = None
    keep_error_text(module)
    key = artefact.key_of(blob)
    assert key
    weakref.finalize(module, unload, key)
    return module
