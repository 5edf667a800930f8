"""Calibration: the packed rows from which a quantised target takes its static ranges.

Ranges must cover what serving will send: every label's queries, rows of every bucket, full ones and ones that end in
padding. A label that calibration never showed is a label whose activations may be cut off.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from app.packing import Embeddings, Pooling, RowBuffers, max_segments

# Queries of one label: 30, 100 and 300 agree alike with float32 (models/LOG.md), and 100 take seconds.
QUERIES_PER_LABEL = 100

_ASKED_AT_ONCE = 500

Answer = Callable[[Sequence[str]], NDArray[np.float32]]


class CalibrationError(ValueError):
    """The calibration queries don't show what serving will send."""


def choose(texts: Sequence[str], labels: Sequence[str], answer: Answer, *, seed: int) -> list[str]:
    """``QUERIES_PER_LABEL`` of ``texts`` for each label that the reference gives, fewer where there are fewer.

    ``answer`` gives probabilities [texts, labels]. Texts are drawn with ``seed`` and no more of them asked than needed.
    Raises ``CalibrationError`` naming the labels that no text gets.
    """
    drawn = [texts[index] for index in np.random.default_rng(seed).permutation(len(texts))]
    chosen: dict[str, list[str]] = {label: [] for label in labels}
    for start in range(0, len(drawn), _ASKED_AT_ONCE):
        asked = drawn[start : start + _ASKED_AT_ONCE]
        for text, index in zip(asked, answer(asked).argmax(axis=1).tolist(), strict=True):
            if len(chosen[labels[index]]) < QUERIES_PER_LABEL:
                chosen[labels[index]].append(text)
        if all(len(found) == QUERIES_PER_LABEL for found in chosen.values()):
            break
    if missing := [label for label, found in chosen.items() if not found]:
        raise CalibrationError(
            f"float32 gives none of the {len(texts)} calibration queries the label {', '.join(missing)}: add queries "
            "for it, or its activations lie outside the calibrated ranges"
        )
    return [text for found in chosen.values() for text in found]


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
