"""Probabilities of many queries by one copy of the model, over the same packed rows that serving fills."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from app.backends.base import Model
from app.packing import Embeddings, Pooling, RowBuffers
from app.ranking import Ranker

Ids = NDArray[np.int64]


class Predictor:
    """Asks ``model`` in rows of ``tokens``, first come first served."""

    def __init__(
        self,
        model: Model,
        embeddings: Embeddings,
        ranker: Ranker,
        *,
        tokens: int,
        pooling: Pooling,
        one_query_a_row: bool = False,
    ) -> None:
        self._model = model
        self._ranker = ranker
        self._row = RowBuffers(tokens, embeddings, segments=1 if one_query_a_row else None, pooling=pooling)

    def probabilities(self, queries: Sequence[Ids]) -> NDArray[np.float32]:
        """[n, labels] for these queries' token ids (each [length] int64, special tokens included)."""
        rows = pack(queries, self._row.tokens, self._row.segments)
        return np.concatenate([self._ranker.probabilities(self._logits(row)) for row in rows])

    def _logits(self, queries: Sequence[Ids]) -> NDArray[np.float32]:
        self._row.fill(queries)
        return self._model.forward(self._row.hidden, self._row.mask, self._row.pool)[: len(queries)]


def pack(queries: Sequence[Ids], tokens: int, segments: int) -> Iterator[list[Ids]]:
    """Rows of at most ``tokens`` and ``segments``, in the order of ``queries``."""
    row: list[Ids] = []
    total = 0
    for query in queries:
        if total + len(query) > tokens or len(row) == segments:
            yield row
            row, total = [], 0
        row.append(query)
        total += len(query)
    if row:
        yield row
