from __future__ import annotations

from collections import Counter
from random import Random

from app.tools.simulation.connections import Connections


def connections(count: int, *, workers: int = 4, seed: int = 0) -> Connections:
    return Connections(count, workers=workers, rng=Random(seed))


def test_a_connection_belongs_to_the_same_worker_each_time() -> None:
    pool = connections(10)
    workers: dict[int, int] = {}
    for moment in range(200):
        connection, worker = pool.take(float(moment))
        assert workers.setdefault(connection, worker) == worker
        pool.release(connection, moment + 0.5)
    assert len(workers) == 10


def test_chance_decides_which_worker_accepts_a_connection_so_few_are_spread_unevenly() -> None:
    pool = connections(64)
    workers = Counter(pool.take(0.0)[1] for _ in range(64))
    assert sum(workers.values()) == 64
    assert len(workers) == 4
    assert max(workers.values()) > 16


def test_a_query_takes_a_connection_that_is_free() -> None:
    pool = connections(3)
    taken = [pool.take(0.0)[0] for _ in range(3)]
    assert sorted(taken) == [0, 1, 2]
    pool.release(taken[1], 1.0)
    assert pool.take(2.0)[0] == taken[1]


def test_one_whose_reply_is_still_to_be_written_is_not_free() -> None:
    pool = connections(2)
    first, _ = pool.take(0.0)
    pool.release(first, 5.0)
    assert pool.take(4.9)[0] != first
    assert pool.take(5.0)[0] == first


def test_where_none_is_free_it_takes_any_and_that_is_free_after_its_last_reply() -> None:
    pool = connections(1)
    assert pool.take(0.0) == pool.take(0.1) == pool.take(0.2)
    pool.release(0, 1.0)
    pool.release(0, 2.0)
    pool.take(3.0)  # two of four are answered
    assert repr(pool) == "<Connections: 0 of 1 free>"
    pool.release(0, 4.0)
    pool.release(0, 4.0)
    pool.take(5.0)
    pool.release(0, 6.0)
    assert pool.take(7.0)[0] == 0
