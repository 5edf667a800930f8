"""The targets ``inf1`` and ``inf2``: the float32 graph, compiled once for each row length and rounded by the compiler.

The compiler needs memory and no chip; the comparison with float32 needs a chip. Where there is none, what was compiled
stays in the work directory, and the same command finds it there on a machine that has one.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from app.backends import make_backend
from app.backends.base import Backend, Model
from app.backends.neuron_artefact import INPUTS
from app.bundle import TargetManifest
from app.errors import BackendError
from app.neuron_devices import NUM_CORES, VISIBLE_CORES
from app.packing import RowBuffers, max_segments
from models.compiling.neuron.job import artefact_name, make_jobs
from models.compiling.neuron.rows import compile_rows
from models.compiling.neuron.toolchain import versions
from models.compiling.order import CompileError, NeuronOrder, Order
from models.compiling.summary import Summary
from models.compiling.targets.base import Built
from models.encoder import PackedEncoder


class NeuronTarget:
    """One generation's target, made as the order says."""

    CALIBRATES = False
    # An artefact computes the same on every core of its generation, but the next runtime may sum in another order.
    LEAST_TOLERANCE = 0.02
    TOLERANCE_HEADROOM = 3.0

    def __init__(self, order: Order, chip: NeuronOrder, summary: Summary) -> None:
        self._order, self._chip, self._summary = order, chip, summary

    def build(self, encoder: PackedEncoder, rows: Sequence[RowBuffers], directory: Path) -> Built:
        """Write ``row_T.pt`` for each bucket; ranges aren't needed, so ``rows`` is empty.

        Raises ``CompileError`` when the SDK isn't there or a row can't be compiled.
        """
        made_by = versions(self._order.target)
        shapes = [
            (tokens, 1 if self._order.one_query_a_row else max_segments(tokens)) for tokens in self._order.buckets
        ]
        jobs = make_jobs(
            encoder,
            shapes,
            self._chip.workdir,
            target=self._order.target,
            compiler_args=list(self._chip.compiler_args),
            versions=made_by,
        )
        compile_rows(jobs, at_once=self._chip.jobs, timeout_s=self._chip.timeout_s, tell=self._summary.note)
        for job in jobs:
            shutil.copyfile(job.artefact, directory / artefact_name(job.tokens))
        return Built(
            engine=made_by,
            precision=self._chip.precision,
            options={
                "inputs": list(INPUTS),
                "dtypes": dict.fromkeys(INPUTS, "float32"),
                "shapes": {str(tokens): _shapes(encoder, tokens, segments) for tokens, segments in shapes},
                "compiler_args": list(self._chip.compiler_args),
                "pipeline_cores": self._chip.pipeline_cores,
            },
        )

    def backend(self, directory: Path, target: TargetManifest) -> Backend:
        if VISIBLE_CORES not in os.environ:
            # Without, the runtime would take every core of the machine, and fail where a service has some of them.
            os.environ.setdefault(NUM_CORES, str(self._chip.pipeline_cores))
        return _ToCompareOn(make_backend(directory, target, labels=0, null_ms=0.0), self._chip.workdir)


class _ToCompareOn:
    """The backend that serves, which says what to do where it finds no chip."""

    def __init__(self, backend: Backend, workdir: Path) -> None:
        self._backend, self._workdir = backend, workdir

    def load(self, core: int) -> Model:
        try:
            return self._backend.load(core)
        except BackendError as error:
            raise CompileError(
                f"compiled, but it can't be compared with float32 here, so nothing was written: {error}\n  on a "
                f"machine that can run it, with the same SDK and a copy of {self._workdir}, the same command takes "
                "what was compiled from there"
            ) from error


def _shapes(encoder: PackedEncoder, tokens: int, segments: int) -> dict[str, list[int]]:
    return {
        "hidden": [1, tokens, encoder.config.embedding_size],
        "mask": [1, 1, tokens, tokens],
        "pool": [segments, tokens],
        "logits": [segments, encoder.config.labels],
    }
