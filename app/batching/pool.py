"""The pool: the one lock around the queue, the replicas that pull from it, and the way back to the event loop."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.batching.entry import Entry, Row, State
from app.batching.queue import BatchQueue
from app.batching.replica import FinishedRow, Replica
from app.batching.request import Outcome, Request, too_late
from app.errors import CoreFailed, InferenceFailed, NotReady, Remedy

logger = logging.getLogger(__name__)


class Backlog(NamedTuple):
    """What waits at one moment; ``oldest_s`` is how long the first of it has waited."""

    items: int
    tokens: int
    oldest_s: float


class ReplicaPool:
    """Feeds replica threads from the queue and wakes the event loop once for each finished row.

    ``on_row`` is told of each row once its answers are on their way, on the event loop like everything that counts;
    ``on_cancelled`` of how many queries were given up before they ran ("queue") and while they ran ("inference");
    ``on_fault`` of a core that failed: the replica's index and the fault's name. The replica that ran last is woken
    first, since its caches are warm; with ``takes_turns`` the one that has waited longest: a chip's core has nothing
    to keep warm, and one that is never used may be broken without anybody knowing.
    """

    def __init__(
        self,
        *,
        on_row: Callable[[FinishedRow], None] = lambda _: None,
        on_cancelled: Callable[[str, int], None] = lambda _stage, _count: None,
        on_fault: Callable[[int, str], None] = lambda _replica, _fault: None,
        takes_turns: bool = False,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._lock = threading.Lock()
        self._queue: BatchQueue | None = None
        self._replicas: list[Replica] = []
        self._idle: list[Replica] = []  # each behind its closed gate
        self._woken = 0  # on their way from there to the lock
        self._closed = False
        self._is_letting_in = False  # at the event loop's next turn
        self._loop: asyncio.AbstractEventLoop | None = None
        self._on_row = on_row
        self._on_cancelled = on_cancelled
        self._on_fault = on_fault
        self._takes_turns = takes_turns
        self.must_restart = False  # a core said that only a new process helps
        self._clock = clock

    def __repr__(self) -> str:
        return f"<ReplicaPool {self.ready} of {self.size} ready, {len(self._idle)} idle, {self._queue!r}>"

    @property
    def size(self) -> int:
        return len(self._replicas)

    @property
    def ready(self) -> int:
        return sum(replica.is_ready for replica in self._replicas) if self._queue is not None else 0

    @property
    def out(self) -> list[int]:
        """The indexes of replicas that take no rows; none before the pool is open."""
        return [replica.index for replica in self._replicas if not replica.is_ready] if self._queue is not None else []

    def lost(self, limit_s: float) -> int:
        """Replicas that will take no row again: their thread ended, or has been in one row for over ``limit_s``."""
        if self._queue is None or self._closed:
            return 0
        now = self._clock()
        return sum(not each.is_alive() or each.is_hanging(now, limit_s) for each in self._replicas)

    @property
    def is_open(self) -> bool:
        """Whether the replicas of the first start are warm, so that there is a queue."""
        return self._queue is not None

    @property
    def queue(self) -> BatchQueue:
        """Raises ``NotReady`` before the pool is open."""
        if self._queue is None:
            raise NotReady("the model is still loading")
        return self._queue

    def backlog(self) -> Backlog:
        """Empty before the pool is open."""
        with self._lock:  # replica threads take from the queue meanwhile
            if self._queue is None:
                return Backlog(0, 0, 0.0)
            return Backlog(len(self._queue), self._queue.tokens, self._queue.oldest_age(self._clock()))

    async def open(
        self,
        replicas: Iterable[Replica],
        make_queue: Callable[[list[dict[int, float]]], BatchQueue],
        *,
        least: int | None = None,
    ) -> None:
        """Start the replicas, wait until all are warm, then let work in.

        ``make_queue`` gets the seconds by bucket that each measured. Raises what kept a replica from loading, unless
        ``least`` of them, where it is given, are warm: those who aren't then stay out.
        """
        self._loop = asyncio.get_running_loop()
        self._replicas = list(replicas)
        for replica in self._replicas:
            replica.start()
        warming = [asyncio.wrap_future(replica.warm) for replica in self._replicas]
        outcomes = await asyncio.gather(*warming, return_exceptions=least is not None)
        seconds = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
        failures = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        if failures and (least is None or len(seconds) < least):
            raise failures[0]
        for failure in failures:
            logger.error("a replica stays out: %s", failure)
        with self._lock:
            self._queue = make_queue(seconds)
            self._wake(len(self._idle))

    def run(
        self, queries: Sequence[NDArray[np.int64]], *, deadline: float, is_bulk: bool = False
    ) -> Coroutine[Any, Any, list[Outcome]]:
        """Let ``queries`` (each [tokens] int64) in; what to await is their outcomes, in order.

        Raises ``NotReady``, ``Overloaded`` or ``PayloadTooLarge`` at once, and when awaited ``DeadlineExceeded`` at the
        deadline (in seconds of the pool's clock). Cancelling who awaits takes the queries out of the queue.
        """
        now = self._clock()
        request = Request(len(queries))
        entries = [
            Entry(ids, enqueued_at=now, deadline=deadline, is_bulk=is_bulk, owner=request, index=index)
            for index, ids in enumerate(queries)
        ]
        self.admit(entries)
        return self._wait(request, entries, deadline)

    async def _wait(self, request: Request, entries: Sequence[Entry], deadline: float) -> list[Outcome]:
        try:
            return await request.wait(deadline - self._clock())
        except asyncio.CancelledError:
            self.count_cancelled(entries)
            raise
        finally:
            if request.remaining:
                self.abandon(entries)

    def admit(self, entries: Sequence[Entry]) -> None:
        """Let all of ``entries``, just made with one deadline, into the queue, or none of them.

        Replicas see them at the event loop's next turn, all that came in this one together: one that took them as they
        come would wrest the interpreter from the loop between any two, for rows of one query.

        Raises ``NotReady``, ``Overloaded`` or ``PayloadTooLarge``.
        """
        with self._lock:
            self.queue.offer(entries, entries[0].enqueued_at, replicas=self._ready_replicas(), hold=True)
        if not self._is_letting_in:
            self._is_letting_in = True
            asyncio.get_running_loop().call_soon(self._let_in)

    def extend(self, entry: Entry, deadline: float) -> bool:
        """Let an entry live until ``deadline`` at least; false where it is too late, since it has ended."""
        with self._lock:  # against a replica thread that finds it expired
            if entry.state is State.DONE:
                return False
            entry.deadline = max(entry.deadline, deadline)
        return True

    def abandon(self, entries: Iterable[Entry]) -> None:
        """Forget entries for which nobody waits any more."""
        with self._lock:
            self.queue.abandon(entries)

    def count_cancelled(self, entries: Iterable[Entry]) -> None:
        """Tell the observer of clients that left: how many of their entries waited, and how many ran."""
        states = [entry.state for entry in entries]
        for state, stage in ((State.WAITING, "queue"), (State.RUNNING, "inference")):
            if count := states.count(state):
                self._on_cancelled(stage, count)

    def take(self, replica: Replica) -> Row | None:
        """The next row for this replica; blocks until there is one. Called by replica threads only."""
        was_woken = False
        while True:
            with self._lock:
                self._woken -= was_woken
                if self._closed:
                    return None
                if self._queue is not None:
                    row, expired = self._queue.next_row(self._clock(), idle_replicas=len(self._idle) + self._woken + 1)
                    if expired:
                        self._post(self._fail_owners, expired, too_late)
                    if row is not None:
                        if len(self._queue) and not self._woken:
                            self._wake(1)
                        return row
                self._idle.append(replica)
            replica.gate.acquire()
            was_woken = True

    def finish(self, finished: FinishedRow) -> None:
        """Hand a row's results to the event loop, in one wake-up. Called by replica threads only."""
        self._post(self._settle, finished)
        if not finished.retried:
            self.queue.latency.observe(finished.row.bucket, finished.finished_at - finished.started_at)

    def give_back(self, entries: Sequence[Entry], replica: Replica, failure: CoreFailed) -> None:
        """A core failed under these: they run elsewhere, once. Called by replica threads only.

        Those whom it befell before are answered ``InferenceFailed``. Where no replica is left they are answered
        ``NotReady``, and so is all that waits: it would wait until its deadline.
        """
        with self._lock:
            running = [entry for entry in entries if entry.state is State.RUNNING]
            again = [entry for entry in running if self.ready and not entry.was_returned]
            for entry in again:
                entry.was_returned = True
            self.queue.give_back(again)
            self._wake(len(again))
            stranded = [] if self.ready else self.queue.drain()
        if failure.remedy is Remedy.RESTART:
            self.must_restart = True
        ended = [entry for entry in running if entry.state is State.RUNNING]
        self._post(self._settle_failed, ended)
        self._post(self._fail_owners, stranded, no_replica)
        self._post(self._on_fault, replica.index, failure.fault)

    def refuse_waiting(self) -> int:
        """Answer what still waits with ``NotReady``: the drain has no more time. Returns how many entries that were."""
        with self._lock:
            entries = self._queue.drain() if self._queue is not None else []
        self._fail_owners(entries, lambda: NotReady("the service is stopping"))
        return len(entries)

    def close(self, *, timeout_s: float = 5.0) -> None:
        """Stop the replicas after their running row. Blocks for at most ``timeout_s``, the first time only."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._wake(len(self._idle))
        for replica in self._replicas:
            replica.stop()
        deadline = time.monotonic() + timeout_s
        for replica in self._replicas:
            if replica.ident is not None:
                replica.join(max(0.0, deadline - time.monotonic()))

    def _let_in(self) -> None:
        self._is_letting_in = False
        with self._lock:
            self._wake(self.queue.let_in())

    def _ready_replicas(self) -> int:
        """Raises ``NotReady`` where there is none."""
        ready = self.ready
        if self._closed or not ready:
            raise no_replica()
        return ready

    def _wake(self, replicas: int) -> None:
        """Let so many idle replicas look for a row."""
        for _ in range(min(replicas, len(self._idle))):
            self._idle.pop(0 if self._takes_turns else -1).gate.release()
            self._woken += 1

    def _post(self, callback: Callable[..., None], *args: Any) -> None:
        assert self._loop is not None
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(callback, *args)

    def _settle(self, finished: FinishedRow) -> None:
        """On the event loop: pass each result on, unless its owner is gone."""
        seconds = finished.finished_at - finished.started_at
        for entry, result in zip(finished.row.entries, finished.results, strict=True):
            if entry.state is State.RUNNING:
                entry.state = State.DONE
                entry.owner.settle(entry.index, Outcome(result, finished.started_at - entry.enqueued_at, seconds))
        assert self._loop is not None
        self._loop.call_soon(self._observe, finished)  # behind those who now write their replies

    def _settle_failed(self, entries: Sequence[Entry]) -> None:
        """On the event loop: the cores failed under these, and there is nowhere else or no further try."""
        for entry in entries:
            if entry.state is State.RUNNING:
                entry.state = State.DONE
                if self.ready:
                    failure = InferenceFailed("two cores failed with this query in the row")
                    entry.owner.settle(entry.index, Outcome(failure, 0.0, 0.0))
                else:
                    entry.owner.fail(no_replica())

    def _observe(self, finished: FinishedRow) -> None:
        with self._lock:
            self.queue.observe_reply(finished.finished_at, self._clock())
        self._on_row(finished)

    def _fail_owners(self, entries: Sequence[Entry], make_error: Callable[[], Exception]) -> None:
        for owner in {entry.owner for entry in entries}:
            owner.fail(make_error())


def no_replica() -> NotReady:
    return NotReady("no replica of the model is ready")
