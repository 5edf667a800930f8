"""Golden queries: what a replica must answer before it takes traffic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from app.backends.null import NullModel
from app.batching.replica import Forward
from app.bundle import Bundle, GoldenQuery
from app.errors import BackendError
from app.golden import GoldenCheck
from app.packing import RowBuffers, max_segments
from app.ranking import Ranker
from app.tokenization import Tokenizer
from tests.tiny_bundle import BUCKETS

Change = Callable[[NDArray[np.float32]], NDArray[np.float32]]


class Served:
    """The tiny bundle with the model that gave its golden answers; counts the rows that were asked of it."""

    def __init__(self, path: Path) -> None:
        self.rows: list[tuple[int, list[int]]] = []  # bucket, tokens of each query
        self._bundle = Bundle(path)
        self._embeddings = self._bundle.embeddings()

    def check(
        self, *, golden: Sequence[GoldenQuery] | None = None, tolerance: float = 1e-3, **options: Any
    ) -> GoldenCheck:
        manifest = self._bundle.manifest
        return GoldenCheck(
            manifest.golden if golden is None else golden,
            tokenizer=Tokenizer(
                self._bundle.path / "tokenizer.json",
                max_tokens=manifest.max_tokens,
                vocabulary=len(self._embeddings.word),
            ),
            ranker=Ranker(manifest.labels, temperature=manifest.temperature),
            max_tokens=manifest.max_tokens,
            tolerance=tolerance,
            **options,
        )

    @property
    def golden(self) -> list[GoldenQuery]:
        return self._bundle.manifest.golden

    def forward(self, change: Change = lambda logits: logits) -> Forward:
        model = NullModel(len(self._bundle.manifest.labels), 0.0)

        def run(bucket: int, queries: Sequence[NDArray[np.int64]]) -> NDArray[np.float32]:
            self.rows.append((bucket, [len(ids) for ids in queries]))
            row = RowBuffers(bucket, self._embeddings, pooling="mean")
            row.fill(queries)
            return change(model.forward(row.hidden, row.mask, row.pool)[: len(queries)])

        return run


@pytest.fixture
def served(tiny_bundle: Path) -> Served:
    return Served(tiny_bundle)


@pytest.mark.parametrize("bucket", BUCKETS)
def test_the_model_that_made_the_answers_passes_in_every_bucket(served: Served, bucket: int) -> None:
    served.check()(bucket, served.forward())


def test_golden_queries_are_packed_with_their_neighbours(served: Served) -> None:
    served.check()(64, served.forward())
    assert len(served.rows) == 1
    assert len(served.rows[0][1]) == len(served.golden)


@pytest.mark.parametrize("bucket", BUCKETS)
def test_no_row_is_over_its_tokens_or_segments(served: Served, bucket: int) -> None:
    served.check(golden=served.golden * 5)(bucket, served.forward())
    for _, lengths in served.rows:
        assert sum(lengths) <= bucket
        assert 0 < len(lengths) <= max_segments(bucket)


def test_a_target_of_one_query_a_row_gets_them_one_by_one(served: Served) -> None:
    served.check(one_query_a_row=True)(64, served.forward())
    assert [len(lengths) for _, lengths in served.rows] == [1] * len(served.golden)


def test_queries_longer_than_the_bucket_are_left_out(served: Served) -> None:
    served.check(one_query_a_row=True)(64, served.forward())
    lengths = [length for _, (length,) in served.rows]
    for bucket in (min(lengths), max(lengths) - 1, max(lengths)):
        served.rows.clear()
        served.check(one_query_a_row=True)(bucket, served.forward())
        assert [length for _, (length,) in served.rows] == [length for length in lengths if length <= bucket]


def test_a_bucket_that_no_golden_query_fits_is_not_taken_for_proved(served: Served) -> None:
    served.check(one_query_a_row=True)(64, served.forward())
    shortest = min(length for _, (length,) in served.rows)
    with pytest.raises(BackendError, match=rf"no golden query is short enough for bucket {shortest - 1}"):
        served.check()(shortest - 1, served.forward())


def test_another_label_is_refused_with_query_bucket_and_both_answers(served: Served) -> None:
    with pytest.raises(
        BackendError,
        match=r"^golden query 'usb c cable' in bucket 64: \w+ \(0\.\d{3}\) instead of payment_invoice \(0\.210\)$",
    ):
        served.check()(64, served.forward(lambda logits: -logits))


def test_one_wrong_answer_among_right_ones_is_enough(served: Served) -> None:
    def last_is_wrong(logits: NDArray[np.float32]) -> NDArray[np.float32]:
        logits[-1] = -logits[-1]
        return logits

    with pytest.raises(BackendError, match="golden query 'red wine glasses' in bucket 64"):
        served.check()(64, served.forward(last_is_wrong))


def test_probabilities_may_differ_by_the_tolerance_and_no_more(served: Served) -> None:
    def sharper(logits: NDArray[np.float32]) -> NDArray[np.float32]:
        return logits * 1.1

    served.check(tolerance=0.1)(64, served.forward(sharper))
    with pytest.raises(BackendError, match=r"probabilities differ by 0\.0\d+, the target allows 0\.001"):
        served.check(tolerance=0.001)(64, served.forward(sharper))


@pytest.mark.parametrize("labels", [8, 10])
def test_a_model_of_another_number_of_labels_is_refused(served: Served, labels: int) -> None:
    def resized(logits: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.resize(logits, (len(logits), labels))

    with pytest.raises(BackendError, match=f"gives {labels} logits a query, the bundle has 9 labels"):
        served.check()(64, served.forward(resized))


def test_a_model_on_several_cores_answers_each_query_on_all_of_them(served: Served) -> None:
    """With a neighbour in its place, a core could answer wrongly unseen."""
    served.check(copies=3)(64, served.forward())
    assert [len(tokens) for _, tokens in served.rows] == [3] * 5
    assert all(len(set(tokens)) == 1 for _, tokens in served.rows)


@pytest.mark.parametrize("core", range(3))
def test_one_of_them_that_is_wrong_is_enough(served: Served, core: int) -> None:
    def wrong(logits: NDArray[np.float32]) -> NDArray[np.float32]:
        logits[core] = -logits[core]
        return logits

    with pytest.raises(BackendError, match="golden query"):
        served.check(copies=3)(64, served.forward(wrong))
