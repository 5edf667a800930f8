"""How far a compiled target's answers are from the float32 reference's, on queries that neither was fitted to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.compiling.order import CompileError

Probabilities = NDArray[np.float32]


class Disagreement(NamedTuple):
    """A query whose label changed; ``margin`` is by how much the reference preferred its own."""

    query: str
    reference: str
    target: str
    margin: float


class Agreement(NamedTuple):
    """Over ``queries`` held-out queries."""

    queries: int
    labels: float  # share of queries whose most likely label is the reference's
    largest: float  # largest |Δp| of any query and label
    mean: float  # mean |Δp| over all queries and labels
    disagreements: list[Disagreement]  # widest margin first


def agreement(
    queries: Sequence[str], labels: Sequence[str], reference: Probabilities, target: Probabilities
) -> Agreement:
    """Compare ``target`` with ``reference``, both [queries, labels]."""
    expected, actual = (side.argmax(axis=1).tolist() for side in (reference, target))
    disagreements = [
        Disagreement(
            query=queries[index],
            reference=labels[wanted],
            target=labels[got],
            margin=float(reference[index, wanted] - reference[index, got]),
        )
        for index, (wanted, got) in enumerate(zip(expected, actual, strict=True))
        if wanted != got
    ]
    return Agreement(
        queries=len(queries),
        labels=1 - len(disagreements) / len(queries),
        largest=largest_difference(reference, target),
        mean=float(np.abs(reference - target).mean()),
        disagreements=sorted(disagreements, key=lambda item: -item.margin),
    )


def demand(found: Agreement, least: float) -> None:
    """Raises ``CompileError`` unless the share ``least`` of the labels agrees."""
    if found.labels < least:
        raise CompileError(
            f"{found.labels:.2%} of the labels agree with float32, {least:.2%} are asked for: nothing written"
        )


def largest_difference(reference: Probabilities, target: Probabilities) -> float:
    """Largest |Δp|. NaN, which compares false with every limit, counts as 1: the furthest that a probability can be."""
    return float(np.nan_to_num(np.abs(reference - target), nan=1.0).max())
