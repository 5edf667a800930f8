"""The default engine: OpenVINO in int8, each replica with its own compiled model for every bucket.

Its own, because a single-stream model runs in the thread that calls it. With one model shared by two replicas a row is
handed to another thread and back: P99 of a lone row 1.2 ms with its own, 1.6 to 2.9 ms with a shared one.
"""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from app.bundle import TargetManifest
from app.cpu_budget import cpu_budget
from app.errors import BackendError
from app.packing import max_segments

if TYPE_CHECKING:
    import openvino as ov
    from numpy.typing import NDArray

MODEL = "model.xml"

_PROPERTIES: dict[str, object] = {
    "NUM_STREAMS": 1,
    "INFERENCE_NUM_THREADS": 1,
    # Left on, every compiled model pins its thread to the same first core.
    "ENABLE_CPU_PINNING": False,
    # Explicit, or what lies between the int8 matmuls becomes bfloat16 on machines that have it, and answers differ.
    "INFERENCE_PRECISION_HINT": "f32",
}


# OpenVINO's binding initialises C++ statics in its first calls and runs Python code meanwhile. Two threads that make
# such a call at once can wait for each other for ever, one for the interpreter and one for the static. So every kind of
# call is made once by one thread alone before replicas run side by side.
_FIRST_CALLS = threading.Lock()


def _without_telemetry() -> None:
    """Keep OpenVINO from telling a statistics service, unasked, that it was imported; it does without the package."""
    sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]


class CpuBackend:
    """Loads ``model.xml`` for each replica and fixes it to every bucket, since each free shape is compiled anew."""

    def __init__(self, directory: Path, target: TargetManifest) -> None:
        self._path = directory / MODEL
        self._buckets = target.buckets
        self._one_query_a_row = target.one_query_a_row

    def load(self, core: int) -> CpuModel:
        _without_telemetry()
        try:
            import openvino as ov
        except ImportError as error:
            raise BackendError(
                "target cpu: OpenVINO isn't installed; install it with: make install, or pip install -e '.[cpu]'"
            ) from error
        try:
            with _FIRST_CALLS:
                engine = ov.Core()
                model = engine.read_model(self._path)
                smallest, *others = self._buckets
                compiled = {smallest: self._compile(engine, model.clone(), smallest)}
                _run_once(compiled[smallest])
            with ThreadPoolExecutor(cpu_budget(), "compile") as pool:
                rest = pool.map(lambda tokens: self._compile(engine, model.clone(), tokens), others)
                return CpuModel(compiled | dict(zip(others, rest, strict=True)))
        except RuntimeError as error:
            raise BackendError(f"target cpu: {self._path} can't be loaded: {error}") from error

    def _compile(self, engine: ov.Core, model: ov.Model, tokens: int) -> ov.CompiledModel:
        embedding_size = model.input("hidden").partial_shape[2]
        segments = 1 if self._one_query_a_row else max_segments(tokens)
        model.reshape(
            {"hidden": [1, tokens, embedding_size], "mask": [1, 1, tokens, tokens], "pool": [segments, tokens]}
        )
        return engine.compile_model(model, "CPU", _PROPERTIES)


def _run_once(compiled: ov.CompiledModel) -> None:
    inputs = [np.zeros(tuple(port.shape), np.float32) for port in compiled.inputs]
    compiled.create_infer_request().infer(inputs, share_inputs=True)


class CpuModel:
    """One compiled model and one request for every bucket."""

    def __init__(self, compiled: dict[int, ov.CompiledModel]) -> None:
        self._requests = {tokens: model.create_infer_request() for tokens, model in compiled.items()}

    def forward(
        self, hidden: NDArray[np.float32], mask: NDArray[np.float32], pool: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        # By position, not by name: looking names up costs more than the call. The order is the order of the graph.
        results = self._requests[hidden.shape[1]].infer([hidden, mask, pool], share_inputs=True)
        logits: NDArray[np.float32] = results[0]
        return logits

    def close(self) -> None:
        self._requests.clear()
