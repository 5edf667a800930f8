"""``DataParallel``: a copy of the model on every core, inputs cut along one dimension, chunks run side by side."""

from __future__ import annotations

import copy
import traceback
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

from neuron_standin import loading, runtime
from neuron_standin.error_text import keep_error_text
from neuron_standin.settings import setting


class DataParallel(torch.nn.Module):
    def __init__(self, model: torch.jit.ScriptModule, device_ids: list[Any] | None = None, dim: int = 0) -> None:
        super().__init__()
        cores = range(len(runtime.runtime().cores))
        self.dim = dim
        self.device_ids = [_core(device) for device in (cores if device_ids is None else device_ids)]
        self.num_workers = 2 * len(self.device_ids)
        self.split_size: int | None = None
        self._models = list(loading.models_of(model))
        programs = [loading.program_of(blob) for _, _, blob in self._models]
        if any(program.header.pipeline_cores > 1 for program in programs):
            raise RuntimeError("DataParallel does not support NeuronCore Pipeline models")
        self._is_dynamic = dim == 0 and all(_is_eligible(program.header.shapes) for program in programs)
        if not self._is_dynamic:
            warnings.warn("DataParallel: dynamic batching is disabled for this model", stacklevel=3)
        self._programs = programs
        for _, _, blob in self._models:
            loading.forget(blob)
        self._model = model
        self._pool: ThreadPoolExecutor | None = None
        self.loaded_modules: list[torch.jit.ScriptModule] = []
        self._load()

    def disable_dynamic_batching(self) -> None:
        self._is_dynamic = False
        self._load()

    def forward(self, *inputs: torch.Tensor) -> Any:
        chunks = self._split(inputs)
        if len(chunks) == 1:
            return self.loaded_modules[0](*chunks[0])
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.num_workers, "neuron-data-parallel")
        return _join(list(self._pool.map(self._run, range(len(chunks)), chunks)), self.dim)

    def _split(self, inputs: tuple[torch.Tensor, ...]) -> list[tuple[torch.Tensor, ...]]:
        sizes = [max(1, tensor.shape[self.dim] // len(self.device_ids)) for tensor in inputs]
        if self.split_size is not None or setting("SPLIT") == "first":
            sizes = [self.split_size or sizes[0]] * len(inputs)
        pieces = [tensor.split(size, self.dim) for tensor, size in zip(inputs, sizes, strict=True)]
        if len({len(piece) for piece in pieces}) > 1:
            raise RuntimeError(f"Inputs split into different numbers of chunks: {[len(piece) for piece in pieces]}")
        return list(zip(*pieces, strict=True))

    def _run(self, index: int, chunk: tuple[torch.Tensor, ...]) -> Any:
        core = index % len(self.loaded_modules)
        try:
            return self.loaded_modules[core](*chunk)
        except Exception as error:
            original = "".join(traceback.format_exception(type(error), error, error.__traceback__))
            message = f"Caught {type(error).__name__} on neuroncore {self.device_ids[core]}.\nOriginal {original}"
            raise type(error)(message) from None

    def _load(self) -> None:
        self.loaded_modules = []  # the old copies unload first
        for core in self.device_ids:
            module = copy.deepcopy(self._model)
            for (owner, name, _), program in zip(loading.models_of(module), self._programs, strict=True):
                chosen = program.with_dynamic_batch() if self._is_dynamic else program
                loading.place(owner, name, chosen, core, 1)
            keep_error_text(module)
            self.loaded_modules.append(module)


def _core(device: Any) -> int:
    """3 or ``"nc:3"``."""
    return int(str(device).removeprefix("nc:"))


def _is_eligible(shapes: list[list[int]]) -> bool:
    return len({shape[0] for shape in shapes}) == 1


def _join(results: list[Any], dim: int) -> Any:
    if isinstance(results[0], torch.Tensor):
        return torch.cat(results, dim)
    return tuple(torch.cat(outputs, dim) for outputs in zip(*results, strict=True))
