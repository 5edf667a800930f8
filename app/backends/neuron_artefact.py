"""A compiled target for Neuron: what its ``target.json`` promises, and the proof that its graph runs on the device."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.bundle import TargetManifest
from app.errors import BackendError
from app.neuron_sdk import SDKS, NeuronSdk

INPUTS = ("hidden", "mask", "pool")
DTYPES = frozenset({"float32", "bfloat16", "float16"})

# Operations of ours that the host would have to compute: what remains around a compiled graph are casts and tuples.
_HOST_COMPUTE = re.compile(r"aten::(?:linear|matmul|bmm|mm|addmm|baddbmm|einsum|softmax|layer_norm|gelu|embedding)\b")


@dataclass(frozen=True, slots=True)
class Artefact:
    """One TorchScript file a bucket, called with ``inputs`` by position, each in its dtype.

    ``pipeline_cores`` is how many consecutive cores a copy takes.
    """

    directory: Path
    buckets: tuple[int, ...]
    inputs: tuple[tuple[str, str], ...]  # name and dtype, in the order of the graph
    pipeline_cores: int
    one_query_a_row: bool

    @classmethod
    def read(cls, directory: Path, manifest: TargetManifest, sdk: NeuronSdk) -> Artefact:
        """Raises ``BackendError`` for one of the other generation, and for inputs that aren't the graph's contract."""
        for other in SDKS.values():
            if other is not sdk and (manifest.target == other.target or other.distribution in manifest.engine):
                raise BackendError(
                    f"target {sdk.target}: {directory} was compiled for {other.chip}, and {sdk.chip} can't run it; "
                    f"compile the checkpoint again with: query-intent compile --target {sdk.target}"
                )
        options = manifest.options
        names, dtypes = options.get("inputs", list(INPUTS)), options.get("dtypes", {})
        if sorted(names) != sorted(INPUTS):
            raise BackendError(f"target {sdk.target}: {directory}: inputs are {names}, the service has {list(INPUTS)}")
        inputs = tuple((name, dtypes.get(name, "float32")) for name in names)
        if unknown := sorted({dtype for _, dtype in inputs} - DTYPES):
            raise BackendError(f"target {sdk.target}: {directory}: dtypes {unknown}; known are {sorted(DTYPES)}")
        cores = options.get("pipeline_cores", 1)
        if not isinstance(cores, int) or cores < 1:
            raise BackendError(f"target {sdk.target}: {directory}: pipeline_cores is {cores}, must be at least 1")
        return cls(directory, tuple(manifest.buckets), inputs, cores, manifest.one_query_a_row)

    def path(self, tokens: int) -> Path:
        return self.directory / f"row_{tokens}.pt"


def check_graph(module: Any, path: Path) -> None:
    """Refuse a graph that the host would compute, all of it or a part.

    A compiler that fails leaves a model that still answers, and rightly, at the speed of the host: no canary sees that.
    Where a graph calls modules inside, only ``inlined_graph`` shows what those do; torch has it from ``forward``, which
    an SDK may have replaced.
    """
    graph = str(getattr(module, "inlined_graph", module.graph))
    if "neuron::forward" not in graph:
        raise BackendError(
            f"{path}: nothing in its graph runs on a NeuronCore (no neuron::forward), so the compiler fell back to the "
            "CPU; read its log and compile again"
        )
    if left := sorted(set(_HOST_COMPUTE.findall(graph))):
        raise BackendError(f"{path}: a part of its graph runs on the CPU ({', '.join(left)}); compile again")
