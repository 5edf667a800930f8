"""Trace and compile one row length, in a process of its own: ``python -m models.compiling.neuron.trace_row JOB.json``.

A process each, since a compiler that is killed for memory or hangs takes its caller with it, and since several can run
at once. Compiles without a chip.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from safetensors.torch import load_file

from app.backends.neuron_artefact import check_graph
from app.packing import MASKED
from models.compiling.neuron.job import Job
from models.compiling.neuron.toolchain import import_sdk
from models.encoder import EncoderConfig, PackedEncoder


def main(path: str) -> None:
    job = Job.read(Path(path))
    encoder = PackedEncoder(EncoderConfig(**job.config))
    encoder.load_state_dict(load_file(job.weights))
    module = compile_row(import_sdk(job.target), encoder.eval(), job)
    check_graph(module, job.artefact)  # an SDK that failed returns a model for the CPU, and no error
    unfinished = job.artefact.with_suffix(".part")
    torch.jit.save(module, str(unfinished))
    unfinished.rename(job.artefact)
    job.mark_done()


def example_row(embedding_size: int, tokens: int, segments: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """``hidden``, ``mask`` and ``pool`` of a row that holds one query of two tokens and padding."""
    mask = torch.full((1, 1, tokens, tokens), MASKED)
    mask[..., :2, :2] = 0
    mask[..., 2:, 2:] = 0
    pool = torch.zeros(segments, tokens)
    pool[0, 0] = 1
    return torch.zeros(1, tokens, embedding_size), mask, pool


def compile_row(sdk: ModuleType, encoder: PackedEncoder, job: Job) -> Any:
    """A ``torch.jit.ScriptModule`` that takes rows of exactly this shape."""
    example = example_row(encoder.config.embedding_size, job.tokens, job.segments)
    options: dict[str, Any] = {
        "compiler_args": job.compiler_args,
        "compiler_workdir": str(Path(job.folder, "compiler").absolute()),
    }
    if job.target == "inf1":
        options["fallback"] = False  # an operator that the chip lacks is an error, not a detour over the CPU
    elif "cpu_backend" in inspect.signature(sdk.trace).parameters:
        options["cpu_backend"] = True  # else tracing takes the machine's cores, if it has any
    with torch.no_grad():
        return sdk.trace(encoder, example, **options)


if __name__ == "__main__":
    main(sys.argv[1])
