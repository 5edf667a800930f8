"""What every peer runs: the dense int8 graph on OpenVINO, at fixed shapes. Imported in a peer's environment.

Fixed, because a shape that OpenVINO hasn't seen is compiled in the middle of the traffic, which ruins the tail: every
batch is padded to the next of a few sizes, and its queries to the next of the lengths that our own buckets have.
"""

from __future__ import annotations

import json
import os
from bisect import bisect_left
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from tokenizers import Tokenizer

from app.text import normalise
from benchmarks.peers.settings import PeerSettings

MASKED = -1e4


def load() -> Classifier:
    """The classifier of this process, warm, as its environment wants it."""
    settings = PeerSettings.from_environment()
    tuning = settings.tuning
    classifier = Classifier(settings.model, threads=tuning.threads, max_batch=tuning.max_batch)
    (settings.warm / str(os.getpid())).touch()
    return classifier


class Classifier:
    """Queries to intents, with ``threads`` for a forward and at most ``max_batch`` queries in it."""

    def __init__(self, directory: Path, *, threads: int, max_batch: int) -> None:
        meta = json.loads((directory / "meta.json").read_text())
        self._labels: list[str] = meta["labels"]
        self._temperature: float = meta["temperature"]
        self._max_tokens: int = meta["max_tokens"]
        self._lengths: list[int] = meta["lengths"]
        self._batches = [1 << power for power in range((max_batch - 1).bit_length() + 1)]
        self._tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(self._max_tokens)
        # Mapped, so that all processes share one copy.
        self._word = np.load(directory / "word.npy", mmap_mode="r")
        self._position = np.load(directory / "position.npy", mmap_mode="r")
        core = ov.Core()
        model = core.read_model(directory / "model.xml")
        properties = {
            "NUM_STREAMS": 1,
            "INFERENCE_NUM_THREADS": threads,
            "ENABLE_CPU_PINNING": False,  # or all processes pin to the same first core
            "INFERENCE_PRECISION_HINT": "f32",  # as we run it: the same answers
        }
        self._shapes: dict[tuple[int, int], _Shape] = {}
        for batch, length in product(self._batches, self._lengths):
            fixed = model.clone()
            fixed.reshape({"hidden": [batch, length, self._word.shape[1]], "mask": [batch, 1, 1, length]})
            self._shapes[batch, length] = _Shape(core.compile_model(fixed, "CPU", properties))
        for shape in self._shapes.values():
            shape.infer()  # the first inference sets things up

    def classify(self, queries: Sequence[str]) -> list[dict[str, Any]]:
        """``{"query", "intent", "confidence"}`` for each of 1 to ``max_batch`` queries."""
        texts = [normalise(query, max_tokens=self._max_tokens) for query in queries]
        ids = [self._tokenizer.encode(text).ids for text in texts]
        batch = self._batches[bisect_left(self._batches, len(ids))]
        length = self._lengths[bisect_left(self._lengths, max(map(len, ids)))]
        shape = self._shapes[batch, length]
        shape.mask.fill(MASKED)
        shape.hidden.fill(0)
        for place, each in enumerate(ids):
            np.take(self._word, each, axis=0, out=shape.hidden[place, : len(each)], mode="clip")
            shape.hidden[place, : len(each)] += self._position[: len(each)]
            shape.mask[place, ..., : len(each)] = 0
        scaled = shape.infer()[: len(ids)] / self._temperature
        exponents = np.exp(scaled - scaled.max(axis=1, keepdims=True))
        best = exponents.argmax(axis=1).tolist()
        confidences = (exponents.max(axis=1) / exponents.sum(axis=1)).tolist()
        return [
            {"query": query, "intent": self._labels[label], "confidence": confidence}
            for query, label, confidence in zip(queries, best, confidences, strict=True)
        ]


class _Shape:
    """A compiled model of one [batch, length] and the buffers it reads: ``hidden`` [B, L, E], ``mask`` [B, 1, 1, L]."""

    def __init__(self, compiled: ov.CompiledModel) -> None:
        self._request = compiled.create_infer_request()
        shapes = {port.get_any_name(): tuple(port.shape) for port in compiled.inputs}
        self.hidden = np.zeros(shapes["hidden"], np.float32)
        self.mask = np.zeros(shapes["mask"], np.float32)
        buffers = {"hidden": self.hidden, "mask": self.mask}
        self._inputs = [buffers[port.get_any_name()] for port in compiled.inputs]

    def infer(self) -> np.ndarray[Any, Any]:
        """Logits [B, labels], written over by the next call."""
        logits: np.ndarray[Any, Any] = self._request.infer(self._inputs, share_inputs=True, share_outputs=True)[0]
        return logits
