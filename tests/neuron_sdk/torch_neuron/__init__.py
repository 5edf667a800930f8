"""Stand-in for ``torch-neuron`` 1.13.1.2.11.13.0 (Inf1). ``neuron_standin.settings`` says how it is steered."""

from __future__ import annotations

import logging
import sys
from typing import Any

import torch
from neuron_standin.compiler import CompileError, compile_graph, traced
from neuron_standin.data_parallel import DataParallel
from neuron_standin.graph import compiled_module, register_ops
from neuron_standin.loading import wrap_load
from neuron_standin.settings import read_settings

from torch_neuron import experimental
from torch_neuron.flags import UNSUPPORTED, cast_of, pipeline_cores_of

__version__ = "1.13.1.2.11.13.0"
__all__ = ["DataParallel", "analyze_model", "experimental", "get_supported_operations", "is_available", "trace"]

_log = logging.getLogger("Neuron")


def trace(
    func: Any,
    example_inputs: Any,
    *,
    compiler_args: list[str] | None = None,
    compiler_timeout: float | None = None,
    compiler_workdir: str | None = None,
    fallback: bool = True,
    dynamic_batch_size: bool = False,
    verbose: int = 0,
    **options: Any,
) -> torch.jit.ScriptModule:
    """Compile, or with ``fallback`` and a compiler that refuses: the CPU's graph, and a warning in the log.

    The other documented arguments (subgraphs, segment sizes, separated weights) are taken by nobody here and refused,
    since what isn't known goes to ``torch.jit.trace``, as in the real one.
    """
    examples = (example_inputs,) if isinstance(example_inputs, torch.Tensor) else tuple(example_inputs)
    arguments = list(compiler_args or [])
    cpu = traced(func, examples, **options)
    try:
        program, is_tuple = compile_graph(
            cpu,
            examples,
            generation="inf1",
            cast=cast_of(arguments),
            compiler_args=arguments,
            unsupported=UNSUPPORTED,
            pipeline_cores=pipeline_cores_of(arguments),
            dynamic_batch=dynamic_batch_size,
            timeout_s=compiler_timeout,
            workdir=compiler_workdir,
        )
    except CompileError as error:
        if not fallback:
            refused = "unsupported" in str(error)
            raise (AttributeError if refused else RuntimeError)(f"neuron-cc failed: {error}") from error
        _log.warning("%s", error)
        _log.warning("torch.neuron.trace failed on _NeuronGraph$0; falling back to native python function call")
        _log.warning("No operator is placed on Neuron runtime; returning a CPU trace")
        return cpu
    _log.info("Percent of model sub-graphs successfully compiled = 100.0%%")
    return compiled_module(program, examples, op="forward_v2", is_tuple=is_tuple)


def analyze_model(model: Any, example_inputs: Any) -> None:
    examples = (example_inputs,) if isinstance(example_inputs, torch.Tensor) else tuple(example_inputs)
    kinds = [node.kind() for node in traced(model, examples).inlined_graph.nodes() if node.kind().startswith("aten::")]
    bad = [kind for kind in kinds if kind in UNSUPPORTED]
    _log.info("The following operations are currently not supported: %s", ", ".join(sorted(set(bad))) or "none")
    _log.info("%.2f%% of all operations are supported", 100 * (1 - len(bad) / max(1, len(kinds))))


def get_supported_operations() -> list[str]:
    """The few that tests ask about."""
    return sorted({"aten::linear", "aten::matmul", "aten::softmax", "aten::layer_norm", "aten::gelu", "aten::tanh"})


def is_available() -> bool:
    return read_settings().generation == "inf1"


register_ops("forward_v2")
wrap_load()
torch.neuron = sys.modules[__name__]
sys.modules["torch.neuron"] = sys.modules[__name__]
