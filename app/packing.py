"""Packing: several queries end to end in one row of T tokens, as the three float arrays that the graph takes.

Queries do not see each other (block-diagonal mask), positions restart at each, and each is pooled from its own tokens,
so an answer does not depend on what else is in the row. The padding is a segment of its own: no token sees nothing,
which would turn a softmax into NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Finite, so that no backend turns a row into NaN; exp(-1e4) is exactly 0 in float32 and in bfloat16.
MASKED = -1e4

Pooling = Literal["cls", "mean"]


def max_segments(tokens: int) -> int:
    """How many queries a row of ``tokens`` holds at most: the shortest is [CLS] word [SEP]."""
    return max(1, tokens // 3)


@dataclass(frozen=True, slots=True)
class Embeddings:
    """What the graph does not hold: ``word`` [vocabulary, E] and ``position`` [positions, E] float32.

    ``position`` starts at the first position of a query and already holds the embedding of token type 0, so an
    architecture's offset and types are settled when the bundle is made.
    """

    word: NDArray[np.float32]
    position: NDArray[np.float32]


class RowBuffers:
    """The buffers of one bucket, owned by one replica and written over by each row."""

    def __init__(self, tokens: int, embeddings: Embeddings, *, segments: int | None = None, pooling: Pooling = "cls"):
        self.tokens = tokens
        self.segments = segments or max_segments(tokens)
        self._embeddings = embeddings
        self._pooling = pooling
        self.hidden = np.zeros((1, tokens, embeddings.word.shape[1]), np.float32)
        self.mask = np.zeros((1, 1, tokens, tokens), np.float32)
        self.pool = np.zeros((self.segments, tokens), np.float32)

    @property
    def longest_query(self) -> int:
        """Tokens of the longest query that fits, both the row and the table of positions."""
        return min(self.tokens, len(self._embeddings.position))

    def fill(self, queries: Sequence[NDArray[np.int64]]) -> None:
        """Write these queries' token ids (each [n] int64, with special tokens) into the row, in order.

        Raises ``ValueError`` when they do not fit, which the queue never lets happen.
        """
        total = sum(map(len, queries))
        if total > self.tokens or len(queries) > self.segments:
            raise ValueError(
                f"{len(queries)} queries of {total} tokens in a row of {self.segments} of {self.tokens}. This is a bug."
            )
        hidden, mask = self.hidden[0], self.mask[0, 0]
        ids = queries[0] if len(queries) == 1 else np.concatenate(queries) if queries else np.empty(0, np.int64)
        # mode="clip" lets numpy write into `out` without a copy; the tokenizer's ids are inside the table by then.
        np.take(self._embeddings.word, ids, axis=0, out=hidden[:total], mode="clip")
        hidden[total:] = 0
        mask.fill(MASKED)
        self.pool.fill(0)
        start = 0
        for segment, query in enumerate(queries):
            end = start + len(query)
            hidden[start:end] += self._embeddings.position[: len(query)]
            mask[start:end, start:end] = 0
            if self._pooling == "cls":
                self.pool[segment, start] = 1
            else:
                self.pool[segment, start:end] = 1 / len(query)
            start = end
        mask[total:, total:] = 0


class SpreadBuffers:
    """The buffers of one bucket for a model that spans ``rows`` cores: one query a row, one row a core.

    Rows that have no query of their own repeat one: no core computes on padding alone.
    """

    def __init__(self, tokens: int, embeddings: Embeddings, *, rows: int, pooling: Pooling = "cls"):
        self.tokens = tokens
        size = embeddings.word.shape[1]
        self.hidden = np.zeros((rows, tokens, size), np.float32)
        self.mask = np.zeros((rows, 1, tokens, tokens), np.float32)
        self.pool = np.zeros((rows, tokens), np.float32)
        self._rows = [RowBuffers(tokens, embeddings, segments=1, pooling=pooling) for _ in range(rows)]
        for place, row in enumerate(self._rows):
            here = slice(place, place + 1)
            row.hidden, row.mask, row.pool = self.hidden[here], self.mask[here], self.pool[here]

    @property
    def longest_query(self) -> int:
        """As ``RowBuffers.longest_query``."""
        return self._rows[0].longest_query

    def fill(self, queries: Sequence[NDArray[np.int64]]) -> None:
        """Write these queries' token ids, at most one a row, in order. Raises ``ValueError`` as ``RowBuffers.fill``."""
        if len(queries) > len(self._rows):
            raise ValueError(f"{len(queries)} queries in {len(self._rows)} rows of one. This is a bug.")
        for place, row in enumerate(self._rows):
            row.fill([queries[place % len(queries)]])
