"""Stand-in for ``torch-neuronx`` 2.9 (Inf2). ``neuron_standin.settings`` says how it is steered."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from neuron_standin import artefact, data_parallel, loading
from neuron_standin.compiler import CompileError, compile_graph, traced
from neuron_standin.graph import compiled_module, register_ops
from neuron_standin.loading import wrap_load
from neuron_standin.placement import multicore_context, neuron_cores_context, set_multicore, set_neuron_cores
from neuron_standin.settings import read_settings

from torch_neuronx.flags import cast_of, option

__version__ = "2.9.0.2.15.32035"
__all__ = [
    "DataParallel",
    "analyze",
    "dynamic_batch",
    "is_available",
    "multicore_context",
    "neuron_cores_context",
    "set_multicore",
    "set_neuron_cores",
    "trace",
]


def trace(
    func: Any,
    example_inputs: Any,
    *_: Any,
    input_output_aliases: dict[Any, int] | None = None,
    compiler_workdir: str | None = None,
    compiler_args: str | list[str] | None = None,
    partitioner_config: None = None,
    inline_weights_to_neff: bool = True,
    cpu_backend: bool = False,
) -> torch.jit.ScriptModule:
    """The whole graph on the device, or RuntimeError. Partitions and separated weights are not played."""
    examples = (example_inputs,) if isinstance(example_inputs, torch.Tensor) else tuple(example_inputs)
    arguments = compiler_args.split() if isinstance(compiler_args, str) else list(compiler_args or [])
    if cpu_backend and option(arguments, "--target") is None:
        raise ValueError("cpu_backend=True needs --target in compiler_args")
    try:
        program, is_tuple = compile_graph(
            traced(func, examples),
            examples,
            generation="inf2",
            cast=cast_of(arguments),
            compiler_args=arguments,
            unsupported=frozenset(),
            workdir=compiler_workdir,
        )
    except CompileError as error:
        raise RuntimeError(f"neuronx-cc failed: {error}") from error
    return compiled_module(program, examples, op="forward", is_tuple=is_tuple)


def dynamic_batch(script: torch.jit.ScriptModule) -> torch.jit.ScriptModule:
    """Let ``script`` take any size of dimension 0, in place. Before it is on a core."""
    for owner, name, blob in loading.models_of(script):
        program = loading.program_of(blob)
        if len({shape[0] for shape in program.header.shapes}) > 1:
            raise ValueError("dynamic_batch: all inputs must have the same size of dimension 0")
        setattr(owner, name, artefact.pack(program.with_dynamic_batch()))
    return script


class DataParallel(data_parallel.DataParallel):
    def __init__(
        self,
        model: torch.jit.ScriptModule,
        device_ids: list[Any] | None = None,
        dim: int = 0,
        set_dynamic_batching: bool = True,
    ) -> None:
        with warnings.catch_warnings():
            if not set_dynamic_batching:
                warnings.simplefilter("ignore")
            super().__init__(model, device_ids, dim)
        if not set_dynamic_batching:
            self.disable_dynamic_batching()


def analyze(func: Any, example_inputs: Any, compiler_workdir: str | None = None, **_: Any) -> dict[str, Any]:
    examples = (example_inputs,) if isinstance(example_inputs, torch.Tensor) else tuple(example_inputs)
    kinds = {node.kind() for node in traced(func, examples).inlined_graph.nodes()}
    return {
        "torch_neuronx_version": __version__,
        "neuronx_cc_version": None,
        "support_percentage": "100.00%",
        "supported_operators": {"aten": sorted(kind.partition("::")[2] for kind in kinds if kind.startswith("aten"))},
        "unsupported_operators": [],
    }


def is_available() -> bool:
    return read_settings().generation == "inf2"


register_ops("forward")
wrap_load()
