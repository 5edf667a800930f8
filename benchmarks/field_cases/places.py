"""The same answer everywhere: the shipped model on queries alone, at each place of a row, in each bucket."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from app.backends.cpu import CpuBackend
from app.bundle import TOKENIZER, Bundle
from app.packing import RowBuffers, max_segments
from app.ranking import Ranker
from app.settings import SHIPPED_BUNDLE
from app.text import normalise
from app.tokenization import Tokenizer
from app.tools.load.queries import OWN_QUERIES, make_up
from benchmarks.field_cases.case import FieldCase, Finding, unless

QUERIES = 1000
TARGET = "cpu"
SAME = 1e-6
TIE = 1e-5  # labels nearer than this may change places

Ids = NDArray[np.int64]


class Shipped:
    """The shipped model on one core, row by row."""

    def __init__(self) -> None:
        bundle = Bundle(SHIPPED_BUNDLE)
        target, embeddings = bundle.target(TARGET), bundle.embeddings()
        self.buckets = target.buckets
        self._max_tokens = bundle.manifest.max_tokens
        self._model = CpuBackend(SHIPPED_BUNDLE / TARGET, target).load(0)
        self._ranker = Ranker(bundle.manifest.labels, temperature=bundle.manifest.temperature)
        self._tokenizer = Tokenizer(
            SHIPPED_BUNDLE / TOKENIZER, max_tokens=self._max_tokens, vocabulary=len(embeddings.word)
        )
        pooling = bundle.manifest.pooling
        self._rows = {bucket: RowBuffers(bucket, embeddings, pooling=pooling) for bucket in self.buckets}

    def encode(self, query: str) -> Ids:
        return self._tokenizer.encode(normalise(query, max_tokens=self._max_tokens)).ids

    def probabilities(self, bucket: int, queries: list[Ids]) -> NDArray[np.float32]:
        """[n, labels] for a row of ``queries``."""
        row = self._rows[bucket]
        row.fill(queries)
        return self._ranker.probabilities(self._model.forward(row.hidden, row.mask, row.pool)[: len(queries)])


def places(scale: float) -> Finding:
    shipped = Shipped()
    count = max(len(OWN_QUERIES), round(QUERIES * scale))
    queries = [shipped.encode(text) for text in [*OWN_QUERIES, *make_up(count)][:count]]
    chance = np.random.default_rng(34)
    worst, flips, rows = 0.0, 0, 0
    for ids in queries:
        alone = shipped.probabilities(next(bucket for bucket in shipped.buckets if bucket >= len(ids)), [ids])[0]
        first, second = np.sort(alone)[::-1][:2]
        for bucket in (bucket for bucket in shipped.buckets if bucket >= len(ids)):
            for row, place in _rows(ids, queries, bucket, chance):
                found = shipped.probabilities(bucket, row)[place]
                worst = max(worst, float(np.abs(found - alone).max()))
                flips += bool(found.argmax() != alone.argmax() and first - second > TIE)
                rows += 1
    figures = {"queries": len(queries), "rows": rows, "worst_difference": worst, "label_flips": flips}
    wrong = unless(worst <= SAME, f"a probability differs by {worst:.1e}")
    return Finding(figures, wrong + unless(not flips, f"{flips} labels differ"))


def _rows(ids: Ids, others: list[Ids], bucket: int, chance: np.random.Generator) -> Iterator[tuple[list[Ids], int]]:
    """The query at each place of a row filled with neighbours by chance."""
    neighbours: list[Ids] = []
    for index in chance.permutation(len(others))[: 2 * max_segments(bucket)]:
        if (
            len(neighbours) + 1 < max_segments(bucket)
            and sum(map(len, neighbours)) + len(others[index]) + len(ids) <= bucket
        ):
            neighbours.append(others[index])
    for place in range(len(neighbours) + 1):
        yield [*neighbours[:place], ids, *neighbours[place:]], place


CASES = [
    FieldCase(
        "F34", "places", f"{QUERIES} queries have one answer at every place of every bucket, within {SAME:g}", 5, places
    ),
]
