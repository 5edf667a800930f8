"""Rows for the bare engine: as full as the queries allow, so that no service can look better than its engine."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchmarks.bare_engine import fill_rows


def queries(*lengths: int) -> list[NDArray[np.int64]]:
    return [np.full(length, place, np.int64) for place, length in enumerate(lengths)]


def lengths(rows: list[list[NDArray[np.int64]]]) -> list[list[int]]:
    return [[len(ids) for ids in row] for row in rows]


def test_a_row_takes_the_first_queries_that_still_fit() -> None:
    assert lengths(fill_rows(queries(5, 6, 3, 4), 8, 9)) == [[5, 3], [6], [4]]


def test_every_query_is_in_one_row() -> None:
    places = sorted(int(ids[0]) for row in fill_rows(queries(5, 6, 3, 4, 8, 3), 8, 9) for ids in row)
    assert places == list(range(6))


def test_a_row_has_no_more_queries_than_the_graph_pools() -> None:
    assert lengths(fill_rows(queries(2, 2, 2), 8, 9)) == [[2, 2], [2]]  # 8 // 3


def test_a_query_longer_than_the_row_is_left_out() -> None:
    assert lengths(fill_rows(queries(9, 8), 8, 9)) == [[8]]


def test_there_are_no_more_rows_than_asked_for() -> None:
    assert lengths(fill_rows(queries(8, 8, 8), 8, 2)) == [[8], [8]]
