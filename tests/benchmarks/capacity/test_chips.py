"""What a row takes on a chip: AWS's figures where there are any, and a band around what nobody has measured."""

from __future__ import annotations

import itertools

import pytest

from benchmarks.capacity.chips import (
    ALONE,
    BERT_BASE,
    DISTILBERT,
    EDGES,
    ENCODERS,
    Chip,
    Published,
    row_seconds,
    share_beside_layers,
)

CHIPS: tuple[Chip, ...] = ("inf1", "inf2")


def test_throughput_gives_the_time_of_a_batch_on_one_core() -> None:
    assert Published(batch=8, cores=4, inferences=1095.4).seconds == pytest.approx(0.0292, rel=0.01)


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize(("chip", "ms"), [("inf1", 7.96), ("inf2", 1.00)])
def test_a_published_row_takes_what_is_published(chip: Chip, edge, ms: float) -> None:
    assert row_seconds(chip, BERT_BASE, 128, edge) * 1e3 == pytest.approx(ms, abs=0.01)


@pytest.mark.parametrize("edge", EDGES)
def test_so_does_distilbert_where_aws_has_it_alone(edge) -> None:
    assert row_seconds("inf2", DISTILBERT, 128, edge) == pytest.approx(2 / 3402)


@pytest.mark.parametrize("chip", CHIPS)
def test_some_of_a_row_is_no_layers(chip: Chip) -> None:
    assert 0.1 < share_beside_layers(chip) < 0.25


@pytest.mark.parametrize(("chip", "encoder", "tokens"), list(itertools.product(CHIPS, ENCODERS, (32, 64, 128))))
def test_the_edges_are_in_order_and_nothing_takes_longer_than_the_largest_published(
    chip: Chip, encoder, tokens
) -> None:
    pessimistic, optimistic = (row_seconds(chip, encoder, tokens, edge) for edge in EDGES)

    assert share_beside_layers(chip) * ALONE[chip].seconds < optimistic <= pessimistic <= ALONE[chip].seconds


@pytest.mark.parametrize("chip", CHIPS)
def test_pessimistically_a_shorter_row_saves_nothing(chip: Chip) -> None:
    assert row_seconds(chip, BERT_BASE, 32, "pessimistic") == row_seconds(chip, BERT_BASE, 128, "pessimistic")


def test_multiply_adds_are_those_of_the_parameters_and_of_attention() -> None:
    """BERT-base has 85 million parameters in its layers, each used once a token."""
    linear, attention = 85e6 * 128, 12 * 2 * 128**2 * 768
    assert BERT_BASE.multiply_adds(128) == pytest.approx(linear + attention, rel=0.01)


def test_a_row_longer_than_aws_has_published_is_not_extrapolated() -> None:
    with pytest.raises(AssertionError, match="another regime"):
        row_seconds("inf1", BERT_BASE, 256, "optimistic")
