"""Golden queries: before a replica takes traffic it must give the answers that its bundle promises, in every bucket.

A device that silently computes on another core, in another precision or not at all fails here and not in production.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from app.batching.replica import Forward
from app.bundle import GoldenQuery
from app.errors import BackendError
from app.packing import max_segments
from app.ranking import Ranker
from app.text import normalise
from app.tokenization import Tokenizer


class GoldenCheck:
    """Same label and |Δp| within ``tolerance`` for every golden query, packed with its neighbours.

    A model that spans several cores is given each query ``copies`` times at once, so that each of them has to answer.
    """

    def __init__(
        self,
        golden: Sequence[GoldenQuery],
        *,
        tokenizer: Tokenizer,
        ranker: Ranker,
        max_tokens: int,
        tolerance: float,
        one_query_a_row: bool = False,
        copies: int = 1,
    ) -> None:
        self._golden = [
            (query, tokenizer.encode(normalise(query.query, max_tokens=max_tokens)).ids) for query in golden
        ]
        self._ranker = ranker
        self._tolerance = tolerance
        self._one_query_a_row = one_query_a_row
        self._copies = copies

    def __call__(self, bucket: int, forward: Forward) -> None:
        """Raises ``BackendError`` that names query, bucket and both answers.

        Queries longer than the bucket are left out; one of them must fit, or nothing would be proved.
        """
        if all(len(ids) > bucket for _, ids in self._golden):
            raise BackendError(f"no golden query is short enough for bucket {bucket}, so it can't be proved")
        for row in self._rows(bucket):
            probabilities = self._ranker.probabilities(forward(bucket, [ids for _, ids in row]))
            for (query, _), actual in zip(row, probabilities, strict=True):
                self._compare(query, actual, bucket)

    def _rows(self, bucket: int) -> Iterator[list[tuple[GoldenQuery, NDArray[np.int64]]]]:
        row: list[tuple[GoldenQuery, NDArray[np.int64]]] = []
        limit = 1 if self._one_query_a_row else max_segments(bucket)
        for query, ids in self._golden:
            if len(ids) > bucket:
                continue
            if self._copies > 1:
                yield [(query, ids)] * self._copies
                continue
            if len(row) == limit or sum(len(other) for _, other in row) + len(ids) > bucket:
                yield row
                row = []
            row.append((query, ids))
        if row:
            yield row

    def _compare(self, query: GoldenQuery, actual: NDArray[np.float32], bucket: int) -> None:
        expected = np.array(query.probabilities)
        if actual.shape != expected.shape:
            raise BackendError(f"the model gives {len(actual)} logits a query, the bundle has {len(expected)} labels")
        names = self._ranker.intents
        got, want = int(actual.argmax()), int(expected.argmax())
        if got != want:
            raise BackendError(
                f"golden query {query.query!r} in bucket {bucket}: {names[got]} ({actual[got]:.3f}) "
                f"instead of {names[want]} ({expected[want]:.3f})"
            )
        if (difference := float(np.abs(actual - expected).max())) > self._tolerance:
            raise BackendError(
                f"golden query {query.query!r} in bucket {bucket}: probabilities differ by {difference:.4f}, "
                f"the target allows {self._tolerance}"
            )
