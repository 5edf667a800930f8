"""No model: answers at once or after a fixed time, so that a load test measures the service itself."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from app.backends.base import Model


class NullModel:
    """Logits that depend on a query's own tokens only (the mean of its embeddings), so crossed answers would show."""

    def __init__(self, labels: int, seconds: float) -> None:
        self._labels = labels
        self._seconds = seconds

    def forward(
        self, hidden: NDArray[np.float32], mask: NDArray[np.float32], pool: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        if self._seconds:
            time.sleep(self._seconds)  # the GIL is free meanwhile, as in a real engine
        logits: NDArray[np.float32] = pool @ hidden[0, :, : self._labels]
        return logits

    def close(self) -> None:
        pass


class NullBackend:
    def __init__(self, *, labels: int, milliseconds: float) -> None:
        self._labels = labels
        self._seconds = milliseconds / 1e3

    def load(self, core: int) -> Model:
        return NullModel(self._labels, self._seconds)
