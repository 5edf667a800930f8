"""Calibration: the packed rows from which a quantised target takes its static ranges.

Ranges must cover what serving will send: every label's queries, rows of every bucket, full ones and ones that end in
padding. A label that calibration never showed is a label whose activations may be cut off.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from app.packing import Embeddings, Pooling, RowBuffers, max_segments

# Queries of one label: enough for stable ranges, few enough for seconds. Measured in models/LOG.md.
QUERIES_PER_LABEL = 100


class CalibrationError(ValueError):
    """The calibration queries don't show what serving will send."""


def balanced(
    probabilities: NDArray[np.float32], labels: Sequence[str], *, per_label: int = QUERIES_PER_LABEL
) -> list[int]:
    """Indices of the first ``per_label`` queries that the reference gives each label.

    ``probabilities`` is [n, labels]. Raises ``CalibrationError`` naming the labels that no query gets.
    """
    answers = probabilities.argmax(axis=1)
    missing = [label for index, label in enumerate(labels) if index not in answers]
    if missing:
        raise CalibrationError(
            f"the reference gives none of the {len(answers)} calibration queries the label {', '.join(missing)}: "
            "add queries for it, or its activations lie outside the calibrated ranges"
        )
    taken: Counter[int] = Counter()
    chosen = []
    for index, label in enumerate(answers.tolist()):
        if taken[label] < per_label:
            taken[label] += 1
            chosen.append(index)
    return chosen


def calibration_rows(
    queries: Sequence[NDArray[np.int64]],
    embeddings: Embeddings,
    *,
    buckets: Sequence[int],
    pooling: Pooling,
    seed: int,
) -> list[RowBuffers]:
    """Every query once, in rows whose bucket and share of padding are drawn with ``seed``."""
    random = np.random.default_rng(seed)
    waiting = [queries[index] for index in random.permutation(len(queries))]
    rows = []
    while waiting:
        first = len(waiting[-1])
        tokens = int(random.choice([bucket for bucket in buckets if bucket >= first]))
        room = int(random.integers(first, tokens, endpoint=True))  # the rest stays padding
        packed: list[NDArray[np.int64]] = []
        while waiting and len(waiting[-1]) <= room and len(packed) < max_segments(tokens):
            packed.append(waiting.pop())
            room -= len(packed[-1])
        row = RowBuffers(tokens, embeddings, pooling=pooling)
        row.fill(packed)
        rows.append(row)
    return rows
