"""The highest rate that holds, how many instances that makes, and what they cost."""

from __future__ import annotations

import dataclasses

import pytest

from benchmarks.capacity.chips import BERT_BASE, DISTILBERT, INSTANCES
from benchmarks.capacity.search import Capacity, Host, Service, dollars_per_million, highest, instances_for

INF1, INF2 = INSTANCES
HOST = Host(request_s=100e-6, row_s=100e-6)
PADDED = Service(INF1, DISTILBERT, 128, packed=False, edge="pessimistic", host=HOST)


def test_halving_finds_the_highest_rate_that_holds() -> None:
    assert highest(lambda rate: rate <= 700, 1000) == pytest.approx(700, abs=1000 / 2**8)


@pytest.mark.parametrize(("holds", "found"), [(False, 0), (True, 996)])
def test_where_none_or_all_of_them_hold(holds: bool, found: float) -> None:
    assert highest(lambda _rate: holds, 1000) == pytest.approx(found, abs=1)


def test_a_padded_row_holds_one_query_and_a_packed_one_as_many_as_fit() -> None:
    """DistilBERT, 4.65 ms a row on 16 cores: 3,440 rows a second."""
    assert PADDED.ceiling(workers=8) == pytest.approx(16 / 0.00465, rel=0.01)
    assert dataclasses.replace(PADDED, packed=True).ceiling(workers=8) == pytest.approx(
        16 / 0.00465 * 128 / 9, rel=0.01
    )


def test_event_loops_bound_it_too() -> None:
    assert dataclasses.replace(PADDED, packed=True).ceiling(workers=2) == 2 / 100e-6


def test_what_is_simulated_is_that_instance() -> None:
    found = PADDED.simulate(2000, workers=4)

    assert (found.queries_a_row, found.within_slo_share > 0.98) == (1, True)
    assert found.p50_ms == pytest.approx(4.65 + 0.2, abs=0.2)


def test_packed_rows_hold_more_on_the_same_rows() -> None:
    packed = dataclasses.replace(PADDED, packed=True)

    assert PADDED.simulate(8000, workers=8).within_slo_share < 0.6
    assert packed.simulate(8000, workers=8).within_slo_share > 0.99


def test_bert_base_padded_to_128_leaves_hardly_anything_of_the_objective_to_wait_in() -> None:
    bert = dataclasses.replace(PADDED, encoder=BERT_BASE)

    assert bert.simulate(1600, workers=4).within_slo_share < 0.99


@pytest.mark.parametrize(("rate", "instances"), [(16_000, 1), (15_999, 2), (1, 16_000), (0, None)])
def test_instances_are_whole_and_none_where_no_rate_holds(rate: float, instances: int | None) -> None:
    assert instances_for(16_000, Capacity(rate, 1, None)) == instances


def test_dollars_are_those_of_all_instances_for_the_rate_that_is_asked_for() -> None:
    assert dollars_per_million(16_000, 2, INF1) == pytest.approx(2 * 1.18 / (16_000 * 3600 / 1e6))
