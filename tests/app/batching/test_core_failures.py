"""A core that fails while a row runs: no accepted query is lost with it, and the other cores go on."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from app.batching import replica as replica_module
from app.batching.pool import ReplicaPool
from app.batching.queue import BatchQueue, Entry, State
from app.batching.replica import FAILURES_BEFORE_RELOAD
from app.errors import BackendError, CoreFailed, InferenceFailed, NotReady, Remedy
from tests.fakes import WARMUP, FakeBackend, FakeModel, answer_of, query
from tests.pools import make_queue, make_replicas, open_pool, results, run, turn_until

pytestmark = pytest.mark.anyio


class CoresThatFail(FakeBackend):
    """``broken`` says what each core raises for every row but its warm-up's, and for those too with ``cold``."""

    def __init__(self, broken: dict[int, Remedy], *, cold: bool = False) -> None:
        super().__init__()
        self.broken = broken
        self.attempts: list[int] = []
        self.attempts_before_load: list[int] = []
        self._cold = cold

    def load(self, core: int) -> FakeModel:
        super().load(core)
        self.attempts_before_load.append(len(self.attempts))
        backend = self

        class Model(FakeModel):
            def forward(self, hidden: Any, mask: Any, pool: Any) -> Any:
                is_warmup = set(np.unique(hidden[0, :, 0])) <= {0.0, float(WARMUP)}
                remedy = backend.broken.get(core)
                if remedy is not None and (backend._cold or not is_warmup):
                    backend.attempts.append(core)
                    raise CoreFailed(f"core {core}", fault="NRT_TIMEOUT", remedy=remedy)
                return super().forward(hidden, mask, pool)

        self.models[-1] = Model(self, core)
        return self.models[-1]


class Faults:
    def __init__(self) -> None:
        self.seen: list[tuple[int, str]] = []

    def __call__(self, replica: int, fault: str) -> None:
        self.seen.append((replica, fault))


async def test_its_row_runs_on_another_one_and_it_takes_no_more() -> None:
    backend, faults = CoresThatFail({1: Remedy.RETIRE}), Faults()
    async with open_pool(backend, replicas=3, on_fault=faults) as pool:
        queries = [query(token, 9, 9) for token in range(10, 40)]
        outcomes = await asyncio.gather(*(run(pool, each) for each in queries))
        assert [results(outcome)[0] for outcome in outcomes] == [answer_of(each) for each in queries]
        while not backend.attempts:
            await run(pool, query(5, 6))
        await turn_until(lambda: pool.lost(10.0) == 1)
        assert (pool.ready, pool.size) == (2, 3)
        assert not pool.must_restart
        await turn_until(lambda: faults.seen == [(1, "NRT_TIMEOUT")])
        assert backend.attempts == [1]
        assert backend.models[[model.core for model in backend.models].index(1)].is_closed
        assert results(await run(pool, query(7))) == [answer_of([7])]


async def test_one_that_was_only_busy_stays() -> None:
    backend = CoresThatFail({0: Remedy.BACK_OFF})
    async with open_pool(backend, replicas=2) as pool:
        while not backend.attempts:
            assert results(await run(pool, query(5, 6))) == [answer_of((5, 6))]
        backend.broken.clear()
        await turn_until(lambda: pool.ready == 2)
        assert pool.lost(10.0) == 0


async def test_a_query_under_which_two_cores_fail_gets_no_third() -> None:
    """Or one query could take every core out."""
    backend = CoresThatFail({0: Remedy.RETIRE, 1: Remedy.RETIRE, 2: Remedy.RETIRE})
    async with open_pool(backend, replicas=3) as pool:
        (outcome,) = await run(pool, query(5, 6))
        assert isinstance(outcome.result, InferenceFailed)
        assert len(backend.attempts) == 2
        await turn_until(lambda: pool.ready == 1)


async def test_without_any_other_core_it_is_not_ready_at_once() -> None:
    async with open_pool(CoresThatFail({0: Remedy.RETIRE})) as pool:
        with pytest.raises(NotReady, match="no replica of the model is ready"):
            await run(pool, query(5, 6))
        with pytest.raises(NotReady):
            await run(pool, query(5, 6))


async def test_what_waits_when_the_last_core_fails_does_not_wait_for_its_deadline() -> None:
    backend = CoresThatFail({0: Remedy.RETIRE})
    async with open_pool(backend) as pool:
        asked = [run(pool, query(*range(5, 15))) for _ in range(12)]  # of which a row holds three
        outcomes = await asyncio.gather(*asked, return_exceptions=True)
        assert {str(outcome) for outcome in outcomes} == {"no replica of the model is ready"}
        assert backend.attempts == [0]
        assert pool.backlog().items == 0


async def test_that_only_a_new_process_helps_is_known() -> None:
    async with open_pool(CoresThatFail({0: Remedy.RESTART}), replicas=2) as pool:
        while not pool.must_restart:
            assert results(await run(pool, query(5, 6))) == [answer_of((5, 6))]
        assert pool.ready == 1


async def test_one_that_is_busy_over_and_over_is_loaded_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica_module, "RELOAD_BACKOFF_S", (0.0,))
    monkeypatch.setattr(replica_module, "BUSY_PAUSE_S", 0.0)
    backend = CoresThatFail({0: Remedy.BACK_OFF})
    async with open_pool(backend) as pool:
        while len(backend.models) == 1:
            await asyncio.gather(run(pool, query(5)), run(pool, query(6)))
        assert backend.attempts_before_load[1] == FAILURES_BEFORE_RELOAD


async def test_one_that_fails_while_it_loads_anew_is_retired(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica_module, "RELOAD_BACKOFF_S", (0.0,))
    monkeypatch.setattr(replica_module, "BUSY_PAUSE_S", 0.0)
    backend, faults = CoresThatFail({0: Remedy.BACK_OFF}), Faults()
    async with open_pool(backend, on_fault=faults) as pool:
        for _ in range(FAILURES_BEFORE_RELOAD - 1):
            await asyncio.gather(run(pool, query(5)), return_exceptions=True)
        backend.broken[0], backend._cold = Remedy.RETIRE, True
        await asyncio.gather(run(pool, query(5)), return_exceptions=True)
        await turn_until(lambda: pool.lost(10.0) == 1)
        assert pool.ready == 0


async def test_one_that_fails_at_the_start_says_why() -> None:
    with pytest.raises(BackendError, match="core 0"):
        async with open_pool(CoresThatFail({0: Remedy.RETIRE}, cold=True)):
            pass


class TestSuccessor:
    """A worker that is started again need not wait for a core that stays broken."""

    @pytest.mark.parametrize(("broken", "comes_up"), [((), True), ((3,), True), ((2, 3), True), ((1, 2, 3), False)])
    async def test_it_comes_up_with_what_the_quorum_needs(self, broken: tuple[int, ...], comes_up: bool) -> None:
        backend = CoresThatFail(dict.fromkeys(broken, Remedy.RETIRE), cold=True)
        pool = ReplicaPool()
        try:
            if not comes_up:
                with pytest.raises(BackendError, match="core 1"):
                    await pool.open(make_replicas(pool, backend, 4), make_queue, least=2)
                return
            await pool.open(make_replicas(pool, backend, 4), make_queue, least=2)
            assert pool.ready == 4 - len(broken)
            await turn_until(lambda: pool.lost(10.0) == len(broken))
            assert results(await run(pool, query(7))) == [answer_of([7])]
        finally:
            await asyncio.to_thread(pool.close)


class TestQueue:
    def offered(self, *lengths: int, is_bulk: bool = False) -> tuple[BatchQueue, list[Entry]]:
        queue = make_queue()
        entries = [Entry(query(*range(length)), enqueued_at=0.0, deadline=9.0, is_bulk=is_bulk) for length in lengths]
        queue.offer(entries, 0.0, replicas=1)
        return queue, entries

    @pytest.mark.parametrize("is_bulk", [False, True])
    async def test_what_is_given_back_waits_ahead_of_the_others_in_its_order(self, is_bulk: bool) -> None:
        queue, entries = self.offered(10, 10, 10, 10, is_bulk=is_bulk)
        before = (len(queue), queue.tokens)
        row = queue.next_row(0.0, idle_replicas=1).row
        assert row is not None
        assert row.entries == entries[:3]
        queue.give_back(row.entries)
        assert (len(queue), queue.tokens) == before
        assert {entry.state for entry in row.entries} == {State.WAITING}
        again = queue.next_row(0.0, idle_replicas=1).row
        assert again is not None
        assert again.entries == entries[:3]

    async def test_it_expires_like_any_other(self) -> None:
        queue, entries = self.offered(10, 10)
        row = queue.next_row(0.0, idle_replicas=2).row
        assert row is not None
        queue.give_back(row.entries)
        assert queue.next_row(9.5, idle_replicas=1).expired[:1] == entries[:1]
        assert queue.tokens <= 10
