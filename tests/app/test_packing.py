"""A packed row keeps its queries apart, pools each from its own tokens, and holds what it says it holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from app.packing import MASKED, Embeddings, RowBuffers, SpreadBuffers, max_segments

T = 12
VOCABULARY, POSITIONS, SIZE = 20, 16, 4

Floats = np.ndarray[Any, np.dtype[np.float32]]


@pytest.fixture
def embeddings() -> Embeddings:
    random = np.random.default_rng(3)
    return Embeddings(
        random.normal(size=(VOCABULARY, SIZE)).astype(np.float32),
        random.normal(size=(POSITIONS, SIZE)).astype(np.float32),
    )


def ids(*tokens: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array(tokens, np.int64)


def segments_seen(row: RowBuffers, token: int) -> list[int]:
    """The tokens that ``token`` attends to."""
    return np.flatnonzero(row.mask[0, 0, token] == 0).tolist()


@pytest.mark.parametrize(("tokens", "segments"), [(1, 1), (2, 1), (3, 1), (5, 1), (6, 2), (8, 2), (48, 16), (512, 170)])
def test_row_holds_a_query_for_every_three_tokens(tokens: int, segments: int) -> None:
    assert max_segments(tokens) == segments


def test_shapes_are_fixed_by_the_bucket(embeddings: Embeddings) -> None:
    row = RowBuffers(T, embeddings)
    assert (row.hidden.shape, row.mask.shape, row.pool.shape) == ((1, T, SIZE), (1, 1, T, T), (4, T))
    assert {array.dtype for array in (row.hidden, row.mask, row.pool)} == {np.dtype(np.float32)}


def test_hidden_is_word_plus_position_and_positions_restart_at_each_query(embeddings: Embeddings) -> None:
    row = RowBuffers(T, embeddings)
    row.fill([ids(1, 7, 2), ids(1, 9, 5, 2)])
    expected = embeddings.word[[1, 7, 2, 1, 9, 5, 2]] + embeddings.position[[0, 1, 2, 0, 1, 2, 3]]
    np.testing.assert_allclose(row.hidden[0, :7], expected)
    assert not row.hidden[0, 7:].any()


def test_query_sees_itself_and_padding_sees_padding(embeddings: Embeddings) -> None:
    row = RowBuffers(T, embeddings)
    row.fill([ids(1, 7, 2), ids(1, 9, 5, 2)])
    assert [segments_seen(row, token) for token in range(T)] == [[0, 1, 2]] * 3 + [[3, 4, 5, 6]] * 4 + [
        [7, 8, 9, 10, 11]
    ] * 5


def test_mask_is_finite_and_turns_into_exactly_nothing(embeddings: Embeddings) -> None:
    row = RowBuffers(T, embeddings)
    row.fill([ids(1, 7, 2)])
    assert set(np.unique(row.mask).tolist()) == {0.0, MASKED}
    assert np.exp(np.float32(MASKED)) == 0


def test_cls_pooling_takes_each_query_s_first_token(embeddings: Embeddings) -> None:
    row = RowBuffers(T, embeddings)
    row.fill([ids(1, 7, 2), ids(1, 9, 5, 2)])
    assert np.argwhere(row.pool == 1).tolist() == [[0, 0], [1, 3]]
    assert row.pool.sum() == 2


def test_mean_pooling_weighs_each_query_s_tokens_alike(embeddings: Embeddings) -> None:
    row = RowBuffers(T, embeddings, pooling="mean")
    row.fill([ids(1, 7, 2), ids(1, 9, 5, 2)])
    np.testing.assert_allclose(row.pool[0], [1 / 3] * 3 + [0] * 9)
    np.testing.assert_allclose(row.pool[1], [0] * 3 + [1 / 4] * 4 + [0] * 5)
    assert not row.pool[2:].any()


def test_one_query_a_row_has_one_pooling_row(embeddings: Embeddings) -> None:
    row = RowBuffers(T, embeddings, segments=1)
    row.fill([ids(1, 7, 2)])
    assert row.pool.shape == (1, T)
    with pytest.raises(ValueError, match="2 queries of 6 tokens in a row of 1 of 12"):
        row.fill([ids(1, 7, 2), ids(1, 8, 2)])


@pytest.mark.parametrize("length", [T - 1, T])
def test_row_takes_up_to_its_tokens(embeddings: Embeddings, length: int) -> None:
    row = RowBuffers(T, embeddings)
    row.fill([np.ones(length, np.int64)])
    assert len(segments_seen(row, 0)) == length


def test_row_refuses_one_token_too_many(embeddings: Embeddings) -> None:
    with pytest.raises(ValueError, match="1 queries of 13 tokens in a row of 4 of 12"):
        RowBuffers(T, embeddings).fill([np.ones(T + 1, np.int64)])


def test_row_takes_as_many_shortest_queries_as_it_has_segments(embeddings: Embeddings) -> None:
    row = RowBuffers(T, embeddings)
    row.fill([ids(1, 7, 2)] * 4)
    assert np.argwhere(row.pool == 1).tolist() == [[0, 0], [1, 3], [2, 6], [3, 9]]


def test_empty_row_is_all_padding(embeddings: Embeddings) -> None:
    row = RowBuffers(T, embeddings)
    row.fill([])
    assert not row.hidden.any()
    assert not row.pool.any()
    assert not row.mask.any()


@pytest.mark.parametrize("before", [[ids(*range(12))], [ids(1, 2, 3)] * 4, []])
def test_nothing_of_the_row_before_is_left(embeddings: Embeddings, before: Sequence[Any]) -> None:
    used, fresh = RowBuffers(T, embeddings), RowBuffers(T, embeddings)
    used.fill(before)
    for row in (used, fresh):
        row.fill([ids(1, 7, 2), ids(1, 9, 5, 2)])
    for left, right in ((used.hidden, fresh.hidden), (used.mask, fresh.mask), (used.pool, fresh.pool)):
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize(("tokens", "longest"), [(8, 8), (16, 16), (24, POSITIONS)])
def test_longest_query_is_bounded_by_row_and_positions(embeddings: Embeddings, tokens: int, longest: int) -> None:
    assert RowBuffers(tokens, embeddings).longest_query == longest


class TestSpread:
    """One query a row, one row a core, for an engine that splits a batch by its first dimension."""

    QUERIES = (ids(1, 7, 2), ids(1, 9, 5, 2), ids(*range(12)))

    @pytest.mark.parametrize("pooling", ["cls", "mean"])
    @pytest.mark.parametrize("count", [1, 2, 3])
    def test_each_row_is_what_it_would_be_alone_and_spare_ones_repeat(
        self, embeddings: Embeddings, pooling: Any, count: int
    ) -> None:
        spread = SpreadBuffers(T, embeddings, rows=3, pooling=pooling)
        spread.fill(self.QUERIES)  # nothing of which may be left
        spread.fill(self.QUERIES[:count])
        assert (spread.hidden.shape, spread.mask.shape, spread.pool.shape) == ((3, T, SIZE), (3, 1, T, T), (3, T))
        for place in range(3):
            alone = RowBuffers(T, embeddings, segments=1, pooling=pooling)
            alone.fill([self.QUERIES[place % count]])
            np.testing.assert_array_equal(spread.hidden[place], alone.hidden[0])
            np.testing.assert_array_equal(spread.mask[place], alone.mask[0])
            np.testing.assert_array_equal(spread.pool[place], alone.pool[0])

    def test_it_refuses_more_queries_than_rows(self, embeddings: Embeddings) -> None:
        with pytest.raises(ValueError, match="4 queries in 3 rows of one"):
            SpreadBuffers(T, embeddings, rows=3).fill([ids(1, 2)] * 4)

    def test_its_longest_query_is_that_of_a_row(self, embeddings: Embeddings) -> None:
        assert SpreadBuffers(24, embeddings, rows=2).longest_query == POSITIONS
