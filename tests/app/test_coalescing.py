"""Identical queries in flight: one computation, and each waits for it as long as it would have waited alone."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from app.batching.queue import State
from app.batching.request import Outcome
from app.coalescing import Flight, Flights
from app.errors import DeadlineExceeded, InferenceFailed, NotReady, Overloaded
from app.tokenization import Tokens
from tests.fakes import PATIENCE_S, FakeBackend, ManualPool, VirtualClock, VirtualTimeLoop, answer_of, query
from tests.pools import open_pool, running

pytestmark = pytest.mark.anyio


def tokens_of(text: str) -> Tokens:
    return Tokens(query(*text.encode()), False, 0)


async def ask(flights: Flights, *texts: str, deadline: float, is_bulk: bool = False) -> list[Outcome]:
    """What a classifier does."""
    joined = {text: flights.join(text, deadline=deadline, is_bulk=is_bulk) for text in texts}
    own = {text: tokens_of(text) for text, flight in joined.items() if flight is None}
    started = dict(zip(own, flights.start(own, deadline=deadline, is_bulk=is_bulk) if own else [], strict=True))
    return await flights.wait([flight or started[text] for text, flight in joined.items()], deadline=deadline)


class TestInVirtualTime:
    @pytest.fixture
    def anyio_backend(self) -> tuple[str, dict[str, Any]]:
        return "asyncio", {"loop_factory": VirtualTimeLoop}

    @pytest.fixture
    def landed(self) -> list[tuple[str, Any]]:
        return []

    @pytest.fixture
    def pool(self) -> ManualPool:
        return ManualPool()

    @pytest.fixture
    def flights(self, anyio_backend: object, pool: Any, landed: list[tuple[str, Any]]) -> Flights:
        def on_landed(flight: Flight, result: Any) -> None:
            landed.append((flight.text, result))

        return Flights(pool, on_landed=on_landed, clock=lambda: asyncio.get_running_loop().time())

    @pytest.fixture
    def client(self, flights: Flights) -> Callable[..., asyncio.Task[list[Outcome]]]:
        """Asks in a task of its own, with ``within_s`` seconds from now."""

        def start(*texts: str, within_s: float = 1.0, is_bulk: bool = False) -> asyncio.Task[list[Outcome]]:
            deadline = asyncio.get_running_loop().time() + within_s
            return asyncio.ensure_future(ask(flights, *texts, deadline=deadline, is_bulk=is_bulk))

        return start

    async def test_one_computation_answers_all_who_ask_meanwhile(
        self, client: Any, flights: Flights, pool: ManualPool, landed: list[tuple[str, Any]]
    ) -> None:
        clients = [client("red shoes") for _ in range(3)]
        await asyncio.sleep(0.1)
        (entry,) = pool.admitted
        assert entry.token_ids.tolist() == list(b"red shoes")
        pool.settle(entry, "answer")
        assert [outcome.result for (outcome,) in await asyncio.gather(*clients)] == ["answer"] * 3
        assert (landed, len(flights), pool.abandoned) == ([("red shoes", "answer")], 0, [])

    async def test_another_text_and_the_same_one_later_are_computations_of_their_own(
        self, client: Any, pool: ManualPool
    ) -> None:
        one, other = client("red shoes"), client("red shoe")
        await asyncio.sleep(0.1)
        pool.settle(pool.admitted[0], "shoes")
        pool.settle(pool.admitted[1], "shoe")
        later = client("red shoes")
        await asyncio.sleep(0.1)
        pool.settle(pool.admitted[2], "again")
        outcomes = await asyncio.gather(one, other, later)
        assert [outcome.result for (outcome,) in outcomes] == ["shoes", "shoe", "again"]

    async def test_a_flight_lives_until_the_latest_deadline(self, client: Any, pool: ManualPool) -> None:
        clients = [client("x", within_s=within_s) for within_s in (2.0, 5.0, 3.0)]
        await asyncio.sleep(0.1)
        (entry,) = pool.admitted
        assert entry.deadline == 5.0
        pool.settle(entry, "answer")
        await asyncio.gather(*clients)

    async def test_each_gives_up_at_its_own_deadline_and_the_others_wait_on(
        self, client: Any, pool: ManualPool
    ) -> None:
        hasty, patient = client("x", within_s=1.0), client("x", within_s=3.0)
        with pytest.raises(DeadlineExceeded):
            await hasty
        assert asyncio.get_running_loop().time() == pytest.approx(1.0)
        assert (patient.done(), pool.abandoned) == (False, [])
        pool.settle(pool.admitted[0], "answer")
        assert (await patient)[0].result == "answer"

    async def test_the_last_one_to_give_up_takes_the_text_out_of_the_queue(
        self, client: Any, flights: Flights, pool: ManualPool
    ) -> None:
        clients = [client("x", within_s=within_s) for within_s in (1.0, 3.0)]
        outcomes = await asyncio.gather(*clients, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [DeadlineExceeded] * 2
        assert asyncio.get_running_loop().time() == pytest.approx(3.0)
        assert (pool.abandoned, len(flights), pool.cancelled) == (pool.admitted, 0, [])

    @pytest.mark.parametrize("leaver", [0, 1, 2])
    async def test_one_that_leaves_takes_nobody_along(self, client: Any, pool: ManualPool, leaver: int) -> None:
        clients = [client("x") for _ in range(3)]
        await asyncio.sleep(0.1)
        clients[leaver].cancel()
        await asyncio.sleep(0.1)
        assert (pool.abandoned, pool.cancelled) == ([], [State.WAITING])
        pool.settle(pool.admitted[0], "answer")
        outcomes = await asyncio.gather(*clients, return_exceptions=True)
        assert isinstance(outcomes.pop(leaver), asyncio.CancelledError)
        assert [outcome.result for (outcome,) in outcomes] == ["answer"] * 2

    async def test_the_last_one_to_leave_ends_the_computation(
        self, client: Any, flights: Flights, pool: ManualPool
    ) -> None:
        clients = [client("x") for _ in range(2)]
        await asyncio.sleep(0.1)
        pool.admitted[0].state = State.RUNNING
        for each in clients:
            each.cancel()
        await asyncio.gather(*clients, return_exceptions=True)
        assert (pool.abandoned, len(flights)) == (pool.admitted, 0)
        assert pool.cancelled == [State.RUNNING] * 2

    async def test_a_failure_is_everybodys_and_the_next_one_tries_again(
        self, client: Any, pool: ManualPool, landed: list[tuple[str, Any]]
    ) -> None:
        failure = InferenceFailed("the model failed on this query")
        clients = [client("x") for _ in range(3)]
        await asyncio.sleep(0.1)
        pool.settle(pool.admitted[0], failure)
        assert [outcome.result for (outcome,) in await asyncio.gather(*clients)] == [failure] * 3
        assert landed == [("x", failure)]
        again = client("x")
        await asyncio.sleep(0.1)
        pool.settle(pool.admitted[1], "answer")
        assert (await again)[0].result == "answer"

    async def test_what_the_queue_refuses_to_finish_is_refused_to_all(self, client: Any, pool: ManualPool) -> None:
        clients = [client("x") for _ in range(2)]
        await asyncio.sleep(0.1)
        pool.admitted[0].owner.fail(NotReady("the service is stopping"))
        outcomes = await asyncio.gather(*clients, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [NotReady] * 2

    @pytest.mark.parametrize(
        ("joined_at", "queue_s", "inference_s"),
        [(0.0, 4.0, 3.0), (1.0, 3.0, 3.0), (4.0, 0.0, 3.0), (6.0, 0.0, 1.0), (7.5, 0.0, 0.0)],
    )
    async def test_the_stages_are_the_seconds_that_one_waited_in_them(
        self, client: Any, pool: ManualPool, joined_at: float, queue_s: float, inference_s: float
    ) -> None:
        """It waits in the queue from 0 to 4 and runs from 4 to 7; the event loop hears of it at 8."""
        first = client("x", within_s=100)
        await asyncio.sleep(joined_at)
        second = client("x", within_s=100)
        await asyncio.sleep(8.0 - joined_at)
        pool.settle(pool.admitted[0], "answer", queue_s=4.0, inference_s=3.0)
        assert await first == [Outcome("answer", 4.0, 3.0)]
        ((_, *seconds),) = await second
        assert seconds == pytest.approx([queue_s, inference_s])

    async def test_a_list_joins_what_it_finds_and_starts_the_rest(self, client: Any, pool: ManualPool) -> None:
        single = client("b")
        await asyncio.sleep(0.1)
        listed = client("a", "b", "c", is_bulk=True)
        await asyncio.sleep(0.1)
        assert [entry.token_ids.tolist() for entry in pool.admitted] == [list(b"b"), list(b"a"), list(b"c")]
        for entry, result in zip(pool.admitted, "BAC", strict=True):
            pool.settle(entry, result)
        assert [outcome.result for outcome in await listed] == ["A", "B", "C"]
        assert (await single)[0].result == "B"

    async def test_a_list_that_leaves_takes_only_what_nobody_else_waits_for(
        self, client: Any, pool: ManualPool
    ) -> None:
        listed, other = client("a", "b", is_bulk=True), client("b", "c", is_bulk=True)
        await asyncio.sleep(0.1)
        a, b, c = pool.admitted
        listed.cancel()
        await asyncio.sleep(0.1)
        assert pool.abandoned == [a]
        pool.settle(b, "B")
        pool.settle(c, "C")
        assert [outcome.result for outcome in await other] == ["B", "C"]

    async def test_a_refused_list_leaves_no_trace(self, client: Any, flights: Flights, pool: ManualPool) -> None:
        single = client("b")
        await asyncio.sleep(0.1)
        pool.refusal = Overloaded("the backlog is long", retry_after_s=1.0)
        with pytest.raises(Overloaded):
            await client("a", "b", is_bulk=True)
        assert (len(flights), pool.abandoned) == (1, [])
        pool.settle(pool.admitted[0], "B")
        assert (await single)[0].result == "B"

    async def test_who_joins_is_not_refused(self, client: Any, pool: ManualPool) -> None:
        first = client("x")
        await asyncio.sleep(0.1)
        pool.refusal = Overloaded("the backlog is long", retry_after_s=1.0)
        second = client("x")
        await asyncio.sleep(0.1)
        pool.settle(pool.admitted[0], "answer")
        assert (await first)[0].result == (await second)[0].result == "answer"

    async def test_a_single_query_does_not_queue_with_a_list_but_takes_its_text_along(
        self, client: Any, flights: Flights, pool: ManualPool
    ) -> None:
        listed = client("a", "b", within_s=5.0, is_bulk=True)
        await asyncio.sleep(0.1)
        single = client("b", within_s=1.0)
        await asyncio.sleep(0.1)
        a, b, ahead = pool.admitted
        assert (pool.abandoned, ahead.is_bulk, ahead.deadline) == ([b], False, 5.0)
        pool.settle(ahead, "B")
        pool.settle(a, "A")
        assert (await single)[0].result == "B"
        assert [outcome.result for outcome in await listed] == ["A", "B"]
        assert len(flights) == 0

    async def test_a_single_query_that_is_refused_leaves_the_list_as_it_was(
        self, client: Any, pool: ManualPool
    ) -> None:
        listed = client("b", is_bulk=True)
        await asyncio.sleep(0.1)
        pool.refusal = Overloaded("the backlog is long", retry_after_s=1.0)
        with pytest.raises(Overloaded):
            await client("b")
        pool.settle(pool.admitted[0], "B")
        assert (await listed)[0].result == "B"

    async def test_a_single_query_joins_the_text_of_a_list_that_runs(self, client: Any, pool: ManualPool) -> None:
        listed = client("b", is_bulk=True)
        await asyncio.sleep(0.1)
        pool.admitted[0].state = State.RUNNING
        single = client("b")
        await asyncio.sleep(0.1)
        pool.settle(pool.admitted[0], "B")
        assert (await listed)[0].result == (await single)[0].result == "B"

    async def test_who_comes_after_the_queue_found_it_expired_starts_anew(
        self, client: Any, flights: Flights, pool: ManualPool
    ) -> None:
        """A replica's thread has found it expired, and the event loop has not heard of it yet."""
        late = client("x")
        await asyncio.sleep(0.1)
        expired = pool.admitted[0]
        expired.state = State.DONE
        fresh = client("x", within_s=5.0)
        await asyncio.sleep(0.1)
        expired.owner.fail(DeadlineExceeded("the answer did not come before the deadline"))
        with pytest.raises(DeadlineExceeded):
            await late
        assert (len(flights), pool.abandoned) == (1, [])
        pool.settle(pool.admitted[1], "answer")
        assert (await fresh)[0].result == "answer"


async def test_a_text_that_was_joined_runs_after_the_deadline_of_who_started_it() -> None:
    clock, backend = VirtualClock(), FakeBackend()
    async with open_pool(backend, clock=clock) as pool:
        flights = Flights(pool, clock=clock)
        backend.hold()
        busy = asyncio.ensure_future(ask(flights, "busy", deadline=100.0))
        await running(backend)
        clients = [asyncio.ensure_future(ask(flights, "x", deadline=deadline)) for deadline in (10.0, 100.0)]
        await asyncio.sleep(0)
        clock.advance(50.0)
        backend.let_go()
        assert (await clients[1])[0].result == answer_of(list(b"x"))
        await asyncio.gather(busy, *clients, return_exceptions=True)
    assert backend.queries == [tuple(b"busy"), tuple(b"x")]


async def test_answers_never_cross_and_nothing_is_left_behind() -> None:
    """Few texts, lists, cancellations and deadlines at once, on real replica threads."""
    chance = random.Random(6)
    texts = [chr(letter) * length for letter in range(97, 105) for length in (1, 3, 20)]
    got: Counter[str] = Counter()

    async def client(flights: Flights) -> None:
        wanted = chance.sample(texts, chance.choice([1, 1, 1, 5]))
        deadline = flights._clock() + chance.choice([0.0, PATIENCE_S, PATIENCE_S, PATIENCE_S])
        task = asyncio.ensure_future(ask(flights, *wanted, deadline=deadline, is_bulk=len(wanted) > 1))
        if chance.random() < 0.3:
            for _ in range(chance.randrange(4)):
                await asyncio.sleep(0)
            task.cancel()
        (outcomes,) = await asyncio.gather(task, return_exceptions=True)
        if isinstance(outcomes, BaseException):
            assert isinstance(outcomes, asyncio.CancelledError | DeadlineExceeded | Overloaded)
            got[type(outcomes).__name__] += 1
        else:
            assert [outcome.result for outcome in outcomes] == [answer_of(list(text.encode())) for text in wanted]
            got["answers"] += len(outcomes)

    backend = FakeBackend()
    async with open_pool(backend, replicas=3) as pool:
        flights = Flights(pool)
        for _ in range(20):
            await asyncio.gather(*(client(flights) for _ in range(30)))
        assert (len(flights), len(pool.queue), pool.queue.tokens) == (0, 0, 0)
    assert got["CancelledError"] > 50
    assert got["answers"] > len(backend.queries) > 0
