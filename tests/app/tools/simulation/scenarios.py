"""What tests of the simulator simulate: a plain service, changed where the test is about it."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.tools.simulation.deployment import Deployment
from app.tools.simulation.lengths import Lengths, LogNormal
from app.tools.simulation.row_times import RowTimes
from app.tools.simulation.workload import Traffic, Workload

PRODUCTS = LogNormal(9, 22)


def deployment(**changes: Any) -> Deployment:
    """One worker of one replica whose event loop costs nothing, and which is in no hurry."""
    plain = {
        "workers": 1,
        "replicas": 1,
        "shared_cores": None,
        "connections": 64,
        "request_s": 0.0,
        "row_s": 0.0,
        "slo_s": 0.010,
        "timeout_s": 100.0,
        "queue_tokens": 1 << 30,
    }
    return Deployment(**{**plain, **changes})


def one_query_a_row(**milliseconds: float) -> RowTimes:
    """``t8=1.0``: a row of 8 tokens takes 1 ms."""
    seconds = {int(name[1:]): ms / 1e3 for name, ms in milliseconds.items()}
    return RowTimes(seconds, {}, max(seconds), one_query_a_row=True)


def poisson(rate: float, *, requests: int = 20_000, seed: int = 0, lengths: Lengths = PRODUCTS) -> Workload:
    return Traffic("poisson", None, lengths, requests, seed).workload(rate)


class Alternately:
    """Queries of these lengths in turn."""

    def __init__(self, *tokens: int) -> None:
        self._tokens = tokens

    def draw(self, count: int, rng: np.random.Generator) -> np.ndarray:
        return np.resize(self._tokens, count)


def at(*seconds: float, tokens: int = 8) -> Workload:
    """Queries at these moments."""
    return Workload(len(seconds) / max(seconds[-1], 1e-9), seconds, [tokens] * len(seconds))
