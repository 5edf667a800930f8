"""The pool: requests on the event loop, rows on replica threads, and nothing lost or crossed between them."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable
from typing import Any

import pytest

from app.batching import replica as replica_module
from app.batching.pool import ReplicaPool
from app.batching.queue import BatchQueue, Entry
from app.batching.replica import FAILURES_BEFORE_RELOAD
from app.batching.request import Request
from app.errors import BackendError, DeadlineExceeded, InferenceFailed, NotReady, Overloaded, PayloadTooLarge
from tests.fakes import (
    NOT_A_NUMBER,
    PATIENCE_S,
    POISON,
    TOO_FEW,
    FakeBackend,
    VirtualClock,
    answer_of,
    query,
)
from tests.pools import BUCKETS, Recorder, make_queue, make_replicas, open_pool, results, run, running, turn_until

pytestmark = pytest.mark.anyio


class TestAnswers:
    async def test_a_query_gets_its_answer_and_the_seconds_of_its_stages(self) -> None:
        async with open_pool(FakeBackend()) as pool:
            (outcome,) = await run(pool, query(5, 6, 7))
        assert outcome.result == answer_of((5, 6, 7))
        assert outcome.queue_s >= 0
        assert outcome.inference_s > 0

    async def test_a_list_over_several_rows_is_answered_in_order(self) -> None:
        """F32."""
        recorder = Recorder()
        queries = [query(*range(5, 5 + length)) for length in (30, 8, 20, 3, 32, 1)]
        async with open_pool(FakeBackend(), recorder=recorder) as pool:
            outcomes = await run(pool, *queries, is_bulk=True)
        assert results(outcomes) == [answer_of(each) for each in queries]
        assert len(recorder.rows) > 1

    async def test_single_queries_that_wait_share_a_row(self) -> None:
        backend = FakeBackend()
        async with open_pool(backend) as pool:
            backend.hold()
            first = run(pool, query(9, 9))
            await running(backend)
            others = [run(pool, query(token, 9, 9)) for token in range(10, 16)]
            await asyncio.sleep(0)
            backend.let_go()
            await asyncio.gather(first, *others)
        assert backend.rows == [[(9, 9)], [(token, 9, 9) for token in range(10, 16)]]

    async def test_what_comes_in_one_turn_of_the_loop_is_seen_together(self) -> None:
        """An idle replica that took them as they come would run a row for each."""
        backend = FakeBackend()
        async with open_pool(backend) as pool:
            await turn_until(lambda: "1 idle" in repr(pool))
            deadline = pool._clock() + PATIENCE_S
            answers = [pool.run([query(token, 9, 9)], deadline=deadline) for token in range(10, 15)]
            await asyncio.gather(*answers)
        assert backend.rows == [[(token, 9, 9) for token in range(10, 15)]]

    async def test_each_idle_replica_takes_work(self) -> None:
        """F11, F16."""
        backend = FakeBackend()
        async with open_pool(backend, replicas=3) as pool:
            await turn_until(lambda: "3 idle" in repr(pool))
            backend.hold()
            answers = [run(pool, query(*[token] * 8)) for token in (10, 11, 12)]
            await running(backend, 3)
            assert repr(pool) == "<ReplicaPool 3 of 3 ready, 0 idle, <BatchQueue 0 waiting, 0 of 10000 tokens>>"
            backend.let_go()
            await asyncio.gather(*answers)
        assert len(backend.rows) == 3

    @pytest.mark.parametrize("takes_turns", [False, True])
    async def test_the_replica_that_ran_last_is_woken_first_or_all_take_turns(self, takes_turns: bool) -> None:
        recorder = Recorder()
        async with open_pool(FakeBackend(), replicas=3, recorder=recorder, takes_turns=takes_turns) as pool:
            for _ in range(9):
                await turn_until(lambda: "3 idle" in repr(pool))
                await run(pool, query(9))
            await turn_until(lambda: len(recorder.rows) == 9)
        ran = [row.replica for row in recorder.rows]
        assert len(set(ran)) == (3 if takes_turns else 1)
        assert not takes_turns or ran == ran[:3] * 3

    async def test_a_list_is_spread_over_idle_replicas(self) -> None:
        backend = FakeBackend()
        async with open_pool(backend, replicas=2) as pool:
            await turn_until(lambda: "2 idle" in repr(pool))
            backend.hold()
            answer = run(pool, *[query(*[token] * 8) for token in range(10, 14)], is_bulk=True)
            await running(backend, 2)
            backend.let_go()
            await answer
        assert [len(row) for row in backend.rows] == [2, 2]

    async def test_answers_never_cross(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """F33. Random lengths, lists, cancellations, poison, deadlines, reloads: each gets its answer or an error."""
        monkeypatch.setattr(replica_module, "RELOAD_BACKOFF_S", (0.0,))
        chance = random.Random(33)
        recorder = Recorder()

        async def client(pool: ReplicaPool) -> int:
            size = chance.choice([1, 1, 1, 7])
            queries = [query(*(chance.randrange(2, 900) for _ in range(chance.randrange(1, 30)))) for _ in range(size)]
            if chance.random() < 0.05:
                queries[-1] = query(5, POISON)
            task = run(pool, *queries, is_bulk=size > 1, within_s=chance.choice([0.0, PATIENCE_S, PATIENCE_S]))
            if chance.random() < 0.3:
                for _ in range(chance.randrange(4)):
                    await asyncio.sleep(0)
                task.cancel()
            (outcomes,) = await asyncio.gather(task, return_exceptions=True)
            if isinstance(outcomes, BaseException):
                assert isinstance(outcomes, asyncio.CancelledError | DeadlineExceeded | Overloaded | NotReady)
                return 0
            for ids, outcome in zip(queries, outcomes, strict=True):
                if POISON in ids:
                    assert isinstance(outcome.result, InferenceFailed)
                else:
                    assert outcome.result == answer_of(ids)
            return size

        async with open_pool(FakeBackend(), replicas=3, recorder=recorder) as pool:
            answered = 0
            for _ in range(20):
                answered += sum(await asyncio.gather(*(client(pool) for _ in range(30))))
            assert answered > 300
            assert (len(pool.queue), pool.queue.tokens) == (0, 0)


class TestTheWayBack:
    async def test_the_event_loop_is_woken_once_for_each_finished_row(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """F39."""
        loop = asyncio.get_running_loop()
        wake_ups: list[str] = []
        original = loop.call_soon_threadsafe

        def counted(callback: Callable[..., Any], *args: Any, **options: Any) -> asyncio.Handle:
            wake_ups.append(threading.current_thread().name)
            return original(callback, *args, **options)

        backend, recorder = FakeBackend(), Recorder()
        async with open_pool(backend, recorder=recorder) as pool:
            monkeypatch.setattr(loop, "call_soon_threadsafe", counted)
            backend.hold()
            first = run(pool, query(9))
            await running(backend)
            others = [run(pool, query(token, 9)) for token in range(10, 20)]
            listed = run(pool, *[query(token, 8) for token in range(20, 30)], is_bulk=True)
            await asyncio.sleep(0)
            backend.let_go()
            await asyncio.gather(first, listed, *others)
        assert sum(len(finished.row.entries) for finished in recorder.rows) == 21
        assert wake_ups.count("replica-0") == len(recorder.rows) == len(backend.rows) < 5

    async def test_rows_are_observed_after_their_answers_are_on_their_way(self) -> None:
        backend, recorder = FakeBackend(), Recorder()
        async with open_pool(backend, recorder=recorder) as pool:
            await run(pool, query(5, 6))
        (finished,) = recorder.rows
        assert (finished.row.bucket, finished.replica) == (8, 0)
        assert finished.finished_at > finished.started_at

    async def test_the_latency_table_follows_the_rows(self) -> None:
        async with open_pool(FakeBackend(), queue=lambda _: make_queue(row_s=1.0)) as pool:
            await run(pool, query(5, 6))
            await turn_until(lambda: pool.queue.latency[8] < 1.0)


class TestCancellation:
    async def test_what_is_cancelled_while_it_waits_never_runs(self) -> None:
        """F12, F13."""
        backend, recorder = FakeBackend(), Recorder()
        async with open_pool(backend, recorder=recorder) as pool:
            backend.hold()
            first = run(pool, query(9))
            await running(backend)
            gone, stays = run(pool, query(10), query(11), is_bulk=True), run(pool, query(12))
            await asyncio.sleep(0)
            gone.cancel()
            with pytest.raises(asyncio.CancelledError):
                await gone
            assert (len(pool.queue), pool.queue.tokens) == (1, 1)
            backend.let_go()
            assert results(await first + await stays) == [answer_of([9]), answer_of([12])]
        assert backend.queries == [(9,), (12,)]
        assert recorder.cancelled == {"queue": 2}

    async def test_what_is_cancelled_while_it_runs_leaves_the_others_of_its_row_alone(self) -> None:
        """F12."""
        backend, recorder = FakeBackend(), Recorder()
        async with open_pool(backend, recorder=recorder) as pool:
            backend.hold()
            first = run(pool, query(9))
            await running(backend)
            gone, stays = run(pool, query(10, 11)), run(pool, query(12, 13))
            await asyncio.sleep(0)
            backend.release()
            await running(backend)
            assert backend.rows[-1] == [(10, 11), (12, 13)]
            gone.cancel()
            with pytest.raises(asyncio.CancelledError):
                await gone
            backend.let_go()
            assert results(await first + await stays) == [answer_of([9]), answer_of((12, 13))]
            assert results(await run(pool, query(14))) == [answer_of([14])]
            assert (len(pool.queue), pool.queue.tokens) == (0, 0)
        assert recorder.cancelled == {"inference": 1}

    async def test_a_list_cancelled_half_way_counts_each_item_where_it_was(self) -> None:
        backend, recorder = FakeBackend(), Recorder()
        async with open_pool(backend, recorder=recorder) as pool:
            backend.hold()
            gone = run(pool, *[query(*[token] * 16) for token in (10, 11, 12, 13, 14)], is_bulk=True)
            await running(backend)
            gone.cancel()
            with pytest.raises(asyncio.CancelledError):
                await gone
            assert (len(pool.queue), pool.queue.tokens) == (0, 0)
        assert recorder.cancelled == {"inference": 2, "queue": 3}
        assert len(backend.queries) == 2

    async def test_cancelling_after_the_answer_counts_nothing(self) -> None:
        recorder = Recorder()
        async with open_pool(FakeBackend(), recorder=recorder) as pool:
            answered = run(pool, query(9))
            await answered
            answered.cancel()
        assert recorder.cancelled == {}


class TestEntries:
    async def test_an_entry_can_be_given_more_time_until_it_has_ended(self) -> None:
        backend = FakeBackend()
        async with open_pool(backend, clock=VirtualClock()) as pool:
            backend.hold()
            entry = Entry(query(9), enqueued_at=0.0, deadline=5.0, owner=Request(1))
            pool.admit([entry])
            for deadline, lives_until in ((3.0, 5.0), (7.0, 7.0)):
                assert pool.extend(entry, deadline)
                assert entry.deadline == lives_until
            await running(backend)
            assert pool.extend(entry, 8.0)
            pool.abandon([entry])
            assert not pool.extend(entry, 9.0)


class TestDeadlines:
    """The virtual clock stands still, so only the event loop's timer says that time is up, however busy the machine."""

    async def test_a_row_that_takes_too_long_is_not_waited_for(self) -> None:
        """F30: an answer after the deadline is none."""
        backend = FakeBackend()
        async with open_pool(backend, clock=VirtualClock()) as pool:
            backend.hold()
            slow = run(pool, query(9), within_s=0.02)
            with pytest.raises(DeadlineExceeded):
                await slow
            backend.let_go()
            assert results(await run(pool, query(10))) == [answer_of([10])]

    async def test_what_expires_while_it_waits_never_runs(self) -> None:
        """F30."""
        backend, recorder = FakeBackend(), Recorder()
        async with open_pool(backend, recorder=recorder, clock=VirtualClock()) as pool:
            backend.hold()
            first = run(pool, query(9))
            await running(backend)
            late = run(pool, query(10), within_s=0.02)
            with pytest.raises(DeadlineExceeded, match="did not come before the deadline"):
                await late
            assert (len(pool.queue), pool.queue.tokens) == (0, 0)
            backend.let_go()
            await first
        assert backend.queries == [(9,)]
        assert recorder.cancelled == {}

    async def test_one_that_is_over_already_is_refused(self) -> None:
        backend = FakeBackend()
        async with open_pool(backend, clock=VirtualClock()) as pool:
            with pytest.raises(Overloaded):
                await run(pool, query(9), within_s=-1.0)
        assert backend.queries == []

    async def test_a_list_is_late_as_a_whole(self) -> None:
        backend = FakeBackend()
        async with open_pool(backend, clock=VirtualClock()) as pool:
            backend.hold()
            late = run(pool, *[query(*[token] * 16) for token in range(10, 15)], is_bulk=True, within_s=0.02)
            with pytest.raises(DeadlineExceeded):
                await late
            assert (len(pool.queue), pool.queue.tokens) == (0, 0)
        assert len(backend.queries) == 2


class TestAdmission:
    async def test_what_the_queue_refuses_is_raised_at_once_and_leaves_nothing_behind(self) -> None:
        backend = FakeBackend()
        async with open_pool(backend, queue=lambda _: make_queue(max_tokens=20)) as pool:
            backend.hold()
            first = run(pool, query(9))
            await running(backend)
            waits = run(pool, query(*[10] * 20))
            await asyncio.sleep(0)
            with pytest.raises(Overloaded):
                await run(pool, query(11))
            with pytest.raises(PayloadTooLarge):
                await run(pool, query(*[12] * 21))
            assert (len(pool.queue), pool.queue.tokens) == (1, 20)
            backend.let_go()
            await asyncio.gather(first, waits)

    async def test_an_event_loop_that_is_late_leaves_less_time_for_the_others(self) -> None:
        """Writing what is answered takes it 50 ms, and so long would the reply of who comes now wait."""
        backend, clock = FakeBackend(), VirtualClock()
        async with open_pool(backend, clock=clock) as pool:
            for _ in range(30):
                await pool.run([query(9)], deadline=clock() + 1)
                clock.advance(0.050)
            backend.hold()
            first = run(pool, query(9))
            await running(backend)
            with pytest.raises(Overloaded):
                await run(pool, query(10), within_s=0.040)
            second = run(pool, query(11), within_s=0.200)
            backend.let_go()
            await asyncio.gather(first, second)

    async def test_it_says_what_waits_and_for_how_long(self) -> None:
        backend, clock = FakeBackend(), VirtualClock(50.0)
        async with open_pool(backend, clock=clock) as pool:
            assert pool.backlog() == (0, 0, 0.0)
            backend.hold()
            first = run(pool, query(9))
            await running(backend)
            waits = run(pool, query(10, 11), query(12), is_bulk=True)
            await asyncio.sleep(0)
            clock.advance(0.5)
            assert pool.backlog() == (2, 3, 0.5)
            backend.let_go()
            await asyncio.gather(first, waits)
            assert pool.backlog() == (0, 0, 0.0)
        assert ReplicaPool().backlog() == (0, 0, 0.0)


class TestFailures:
    @pytest.mark.parametrize("culprit", [POISON, NOT_A_NUMBER, TOO_FEW])
    async def test_the_query_that_is_to_blame_fails_alone(self, culprit: int) -> None:
        """F9."""
        async with open_pool(FakeBackend()) as pool:
            good, bad, fine = results(await run(pool, query(5, 6), query(7, culprit), query(8, 9), is_bulk=True))
            assert good == answer_of((5, 6))
            assert isinstance(bad, InferenceFailed)
            assert fine == answer_of((8, 9))

    async def test_a_replica_that_is_stuck_in_a_row_is_lost_and_one_that_idles_is_not(self) -> None:
        """F7."""
        backend, clock = FakeBackend(), VirtualClock()
        async with open_pool(backend, replicas=2, clock=clock) as pool:
            backend.hold()
            stuck = run(pool, query(5))
            await running(backend)
            assert pool.lost(10.0) == 0
            clock.advance(10.1)
            assert pool.lost(10.0) == 1
            backend.let_go()
            await stuck
            assert pool.lost(10.0) == 0

    async def test_what_nobody_waits_for_is_not_tried_again_when_its_row_fails(self) -> None:
        backend = FakeBackend()
        async with open_pool(backend) as pool:
            backend.hold()
            first = run(pool, query(5))
            await running(backend)
            leaver, bad = run(pool, query(6)), run(pool, query(POISON))
            await turn_until(lambda: len(pool.queue) == 2)
            backend.release()
            await running(backend)
            leaver.cancel()
            await turn_until(leaver.done)
            backend.let_go()
            (failed,) = results(await bad)
            assert isinstance(failed, InferenceFailed)
            await first
        assert (6,) not in [row[0] for row in backend.rows if len(row) == 1]

    async def test_single_queries_beside_a_poisonous_one_are_answered(self) -> None:
        """F9."""
        backend = FakeBackend()
        async with open_pool(backend) as pool:
            backend.hold()
            first = run(pool, query(9))
            await running(backend)
            bad, good = run(pool, query(POISON)), run(pool, query(10))
            await asyncio.sleep(0)
            backend.let_go()
            assert isinstance(results(await bad)[0], InferenceFailed)
            assert results(await good + await first) == [answer_of([10]), answer_of([9])]
            assert pool.ready == 1

    async def test_a_replica_that_keeps_failing_is_loaded_anew_and_readiness_follows(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """F7."""
        monkeypatch.setattr(replica_module, "RELOAD_BACKOFF_S", (0.0,))
        backend = FakeBackend(None, BackendError("the device is still busy"))
        async with open_pool(backend) as pool:
            backend.load_started.acquire()
            backend.may_load.clear()
            for _ in range(FAILURES_BEFORE_RELOAD):
                assert pool.ready == 1
                await run(pool, query(POISON))
            await asyncio.to_thread(backend.load_started.acquire)
            assert backend.models[0].is_closed
            assert pool.ready == 0
            with pytest.raises(NotReady, match="no replica of the model is ready"):
                await run(pool, query(5))
            backend.may_load.set()
            await turn_until(lambda: pool.ready == 1)
            assert results(await run(pool, query(5))) == [answer_of([5])]
        assert len(backend.models) == 2

    async def test_one_good_row_between_bad_ones_keeps_the_copy(self) -> None:
        backend = FakeBackend()
        async with open_pool(backend) as pool:
            for token in [*[POISON] * (FAILURES_BEFORE_RELOAD - 1), 5, *[POISON] * (FAILURES_BEFORE_RELOAD - 1)]:
                await run(pool, query(token))
        assert len(backend.models) == 1

    async def test_the_others_serve_on_while_one_is_away(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(replica_module, "RELOAD_BACKOFF_S", (PATIENCE_S,))
        backend = FakeBackend()
        async with open_pool(backend, replicas=2) as pool:
            backend.hold(9)
            busy = run(pool, query(9))
            await running(backend)
            for _ in range(FAILURES_BEFORE_RELOAD):
                await run(pool, query(POISON))
            await turn_until(lambda: pool.ready == 1)
            backend.let_go()
            assert results(await busy + await run(pool, query(5))) == [answer_of([9]), answer_of([5])]
            assert repr(pool).startswith("<ReplicaPool 1 of 2 ready")


class TestOpening:
    async def test_before_it_is_open_it_is_not_ready(self) -> None:
        pool = ReplicaPool()
        assert (pool.size, pool.ready, pool.is_open) == (0, 0, False)
        assert repr(pool) == "<ReplicaPool 0 of 0 ready, 0 idle, None>"
        with pytest.raises(NotReady):
            await run(pool, query(5))
        with pytest.raises(NotReady, match="still loading"):
            _ = pool.queue
        assert pool.refuse_waiting() == 0

    async def test_nothing_is_ready_until_all_replicas_are_warm(self) -> None:
        """F4."""
        backend = FakeBackend()
        backend.may_load.clear()
        pool = ReplicaPool()
        opening = asyncio.ensure_future(pool.open(make_replicas(pool, backend, 2), make_queue))
        await asyncio.to_thread(backend.load_started.acquire)
        assert (pool.size, pool.ready, pool.is_open) == (2, 0, False)
        backend.may_load.set()
        await opening
        assert (pool.ready, pool.is_open) == (2, True)
        await asyncio.to_thread(pool.close)

    async def test_the_queue_is_made_of_what_each_replica_measured(self) -> None:
        measured: list[dict[int, float]] = []

        def queue(seconds: Any) -> BatchQueue:
            measured.extend(seconds)
            return make_queue()

        async with open_pool(FakeBackend(), replicas=2, queue=queue):
            assert [tuple(each) for each in measured] == [BUCKETS, BUCKETS]

    @pytest.mark.parametrize("failures", [[BackendError("no such device")], [None, BackendError("no such device")]])
    async def test_a_replica_that_can_not_load_stops_the_opening_with_its_reason(
        self, failures: list[Exception | None]
    ) -> None:
        with pytest.raises(BackendError, match="no such device"):
            async with open_pool(FakeBackend(*failures), replicas=2):
                pass  # pragma: no cover

    async def test_opening_can_be_given_up_while_models_load(self) -> None:
        backend = FakeBackend()
        backend.may_load.clear()
        pool = ReplicaPool()
        opening = asyncio.ensure_future(pool.open(make_replicas(pool, backend, 2), make_queue))
        await asyncio.to_thread(backend.load_started.acquire)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        backend.may_load.set()
        await asyncio.to_thread(pool.close)
        assert all(model.is_closed for model in backend.models)


class TestClosing:
    async def test_it_ends_the_threads_and_gives_the_cores_back(self) -> None:
        backend = FakeBackend()
        async with open_pool(backend, replicas=3) as pool:
            pass
        assert pool.ready == 0
        assert [model.is_closed for model in backend.models] == [True] * 3
        with pytest.raises(NotReady):
            await run(pool, query(5))
        pool.close()

    async def test_a_running_row_is_finished_first(self) -> None:
        backend = FakeBackend()
        async with open_pool(backend) as pool:
            backend.hold()
            last = run(pool, query(9))
            await running(backend)
            closing = asyncio.ensure_future(asyncio.to_thread(pool.close, timeout_s=PATIENCE_S))
            backend.let_go()
            await closing
            assert results(await last) == [answer_of([9])]

    async def test_a_pending_reload_does_not_hold_it_up(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(replica_module, "RELOAD_BACKOFF_S", (10 * PATIENCE_S,))
        backend = FakeBackend()
        async with open_pool(backend) as pool:
            for _ in range(FAILURES_BEFORE_RELOAD):
                await run(pool, query(POISON))
            await turn_until(lambda: pool.ready == 0)
        assert len(backend.models) == 1

    async def test_a_pool_that_never_opened_closes(self) -> None:
        ReplicaPool().close()

    async def test_what_still_waits_at_the_drain_s_bound_is_refused_and_what_runs_is_answered(self) -> None:
        backend = FakeBackend()
        async with open_pool(backend) as pool:
            backend.hold()
            first = run(pool, query(9))
            await running(backend)
            single, listed = run(pool, query(10)), run(pool, query(11), query(12), is_bulk=True)
            await asyncio.sleep(0)
            assert pool.refuse_waiting() == 3
            for refused in (single, listed):
                with pytest.raises(NotReady, match="the service is stopping"):
                    await refused
            backend.let_go()
            assert results(await first) == [answer_of([9])]
        assert backend.queries == [(9,)]


def test_a_row_that_outlives_the_event_loop_ends_quietly(caplog: pytest.LogCaptureFixture) -> None:
    backend = FakeBackend()
    pool = ReplicaPool()

    async def leave_while_a_row_runs() -> None:
        await pool.open(make_replicas(pool, backend, 1), make_queue)
        backend.hold()
        left = run(pool, query(9))
        await running(backend)
        left.cancel()

    asyncio.run(leave_while_a_row_runs())
    backend.let_go()
    pool.close(timeout_s=PATIENCE_S)
    assert backend.models[0].is_closed
    assert caplog.text == ""
