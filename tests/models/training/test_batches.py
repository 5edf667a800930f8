"""Batches hold queries of like length, each query once, the same ones for the same seed."""

from __future__ import annotations

import random

import pytest

from models.training.batches import bucketed, shared_out


@pytest.mark.parametrize("count", [0, 1, 8, 9, 1000])
def test_every_query_is_in_one_batch(count: int) -> None:
    batches = bucketed([random.Random(index).randint(3, 32) for index in range(count)], 8, random.Random(1))
    assert sorted(index for batch in batches for index in batch) == list(range(count))
    assert max((len(batch) for batch in batches), default=0) <= 8


def test_little_is_padded() -> None:
    chance = random.Random(1)
    lengths = [chance.randint(3, 32) for _ in range(3200)]
    batches = bucketed(lengths, 64, random.Random(1))
    padded = sum(len(batch) * max(lengths[index] for index in batch) for batch in batches)
    assert padded < 1.05 * sum(lengths)


def test_batches_follow_the_seed_and_come_in_no_order_of_length() -> None:
    lengths = list(range(3, 33)) * 10
    first, again, other = (bucketed(lengths, 8, random.Random(seed)) for seed in (1, 1, 2))
    assert first == again != other
    longest = [max(lengths[index] for index in batch) for batch in first]
    assert longest != sorted(longest)


def test_processes_get_as_many_batches_each_and_none_twice() -> None:
    batches = [[number] for number in range(11)]
    shares = [shared_out(batches, rank, 3) for rank in range(3)]
    assert [len(share) for share in shares] == [3, 3, 3]
    assert len({batch[0] for share in shares for batch in share}) == 9
    assert shared_out(batches, 0, 1) == batches
