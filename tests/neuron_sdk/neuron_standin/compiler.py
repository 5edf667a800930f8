"""The compiler's part of ``trace``: from a model and example inputs to what the device would compute.

STANDIN_NEURON_COMPILER says what is wrong with it; ``@64`` at the end: only for graphs whose row has 64 tokens.

    fail        it refuses the graph
    killed      it is killed, for want of memory as a rule
    slow:30     it takes 30 seconds
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from neuron_standin.artefact import Header, Program
from neuron_standin.numerics import Cast, apply_cast
from neuron_standin.settings import setting

# Beside its weights a model has code and room for activations on the chip.
_MODEL_BYTES = 8 * 2**20


class CompileError(Exception):
    """The compiler's complaint; each SDK makes of it what the real one does."""


class _Function(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self._function = function

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self._function(*inputs)


def traced(model: Any, examples: tuple[torch.Tensor, ...], **options: Any) -> torch.jit.ScriptModule:
    """What runs on the CPU and is the compiler's input."""
    module = model if isinstance(model, torch.nn.Module) else _Function(model)
    with torch.no_grad():
        result: torch.jit.ScriptModule = torch.jit.trace(module, examples, check_trace=False, **options)
    return result


def compile_graph(
    cpu: torch.jit.ScriptModule,
    examples: tuple[torch.Tensor, ...],
    *,
    generation: str,
    cast: Cast,
    compiler_args: list[str],
    unsupported: frozenset[str],
    pipeline_cores: int = 1,
    dynamic_batch: bool = False,
    timeout_s: float | None = None,
    workdir: str | None = None,
) -> tuple[Program, bool]:
    """The program, and whether it answers with a tuple. Raises CompileError, and TimeoutExpired after ``timeout_s``."""
    _misbehave(examples, timeout_s)
    frozen = torch.jit.freeze(cpu.eval(), optimize_numerics=False)
    if missing := sorted({node.kind() for node in frozen.graph.nodes()} & unsupported):
        raise CompileError(f"unsupported operators: {', '.join(missing)}")
    if doubles := [index for index, tensor in enumerate(examples) if tensor.dtype == torch.float64]:
        raise CompileError(f"float64 inputs are not supported: {doubles}")
    result = cpu(*examples)
    outputs = 1 if isinstance(result, torch.Tensor) else len(result)
    weights = _weight_bytes(frozen.graph)
    apply_cast(frozen.graph, cast)
    header = Header(
        generation=generation,
        shapes=[list(tensor.shape) for tensor in examples],
        dtypes=[str(tensor.dtype) for tensor in examples],
        outputs=outputs,
        pipeline_cores=pipeline_cores,
        device_bytes=_MODEL_BYTES + (weights // 2 if cast.scope == "all" else weights),
        dynamic_batch=dynamic_batch,
        compiler_args=compiler_args,
    )
    if workdir:
        Path(workdir).mkdir(parents=True, exist_ok=True)
        (Path(workdir) / "graph_def.txt").write_text(str(frozen.graph))
    return Program(header, frozen), not isinstance(result, torch.Tensor)


def _misbehave(examples: tuple[torch.Tensor, ...], timeout_s: float | None) -> None:
    what, _, row = setting("COMPILER").partition("@")
    if not what or (row and examples[0].shape[1] != int(row)):
        return
    if what == "fail":
        raise CompileError("Compile command returned: 1")
    if what == "killed":
        raise CompileError("Compile command returned: -9")
    seconds = float(what.removeprefix("slow:"))
    if timeout_s is not None and timeout_s < seconds:
        time.sleep(timeout_s)
        raise subprocess.TimeoutExpired("neuron-cc compile", timeout_s)
    time.sleep(seconds)


def _weight_bytes(graph: torch._C.Graph) -> int:
    constants = [node.output().toIValue() for node in graph.nodes() if node.kind() == "prim::Constant"]
    return sum(value.numel() * value.element_size() for value in constants if isinstance(value, torch.Tensor))
