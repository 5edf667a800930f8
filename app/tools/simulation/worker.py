"""A worker in virtual time: the service's own queue and latency table between an event loop and replicas."""

from __future__ import annotations

from collections import deque
from enum import IntEnum
from random import Random
from typing import NamedTuple, Protocol

import numpy as np

from app.batching.entry import Entry, Row, State
from app.batching.latency import LatencyTable
from app.batching.queue import BatchQueue
from app.errors import Overloaded, PayloadTooLarge
from app.packing import max_segments
from app.tools.simulation.cores import Cores, EventLoop
from app.tools.simulation.deployment import Deployment
from app.tools.simulation.row_times import RowTimes
from app.tools.simulation.timeline import Timeline

# Reading, validating and tokenising take about as much of the loop as writing the reply.
SHARE_BEFORE_QUEUE = 0.5


class Ending(IntEnum):
    """What a client is told; 0 is for a query that has not ended."""

    ANSWERED = 1
    REJECTED = 2  # at admission, with 429; with 413 where the queue never has room for it
    EXPIRED = 3  # 504


class OnEnd(Protocol):
    """Told of each query that ended: its entry, when the client has its reply, and what that says."""

    def __call__(self, entry: Entry, at: float, ending: Ending, retry_after_s: float | None = None) -> None: ...


class _Running(NamedTuple):
    row: Row
    started_at: float


class Worker:
    """Stands for the process: what its event loop, its pool and its replicas do, and when."""

    def __init__(
        self,
        deployment: Deployment,
        row_times: RowTimes,
        *,
        timeline: Timeline,
        cores: Cores,
        rng: Random,
        on_end: OnEnd,
    ) -> None:
        self.loop = EventLoop(cores)
        self.rows = self.row_queries = self.row_tokens = self.bucket_tokens = 0
        self.busy_s = 0.0  # of all replicas
        self.replicas = deployment.replicas
        self._before_s = deployment.request_s * SHARE_BEFORE_QUEUE
        self._after_s = deployment.request_s - self._before_s
        self._row_s = deployment.row_s
        self._timeout_s = deployment.timeout_s
        self._row_times = row_times
        self._timeline = timeline
        self._cores = cores
        self._rng = rng
        self._on_end = on_end
        self.queue = BatchQueue(
            LatencyTable(row_times.warm_s),
            slo_s=deployment.slo_s,
            max_tokens=deployment.queue_tokens,
            segments=(lambda _bucket: 1) if row_times.one_query_a_row else max_segments,
        )
        self._idle_since = [0.0] * deployment.replicas  # of each idle replica; the last is woken first
        self._unanswered: deque[Entry] = deque()  # as admitted, and so in the order of their deadlines
        self._token_ids = [np.zeros(tokens, np.int64) for tokens in range(row_times.max_tokens + 1)]

    def receive(self, now: float, *, tokens: int, number: int, connection: int) -> None:
        """A request has arrived on one of this worker's connections."""
        parsed_at = self.loop.spend(now, self._before_s)
        entry = Entry(
            self._token_ids[min(tokens, self._row_times.max_tokens)],
            enqueued_at=parsed_at,
            deadline=parsed_at - self._before_s + self._timeout_s,
            owner=connection,
            index=number,
        )
        self._timeline.at(parsed_at, self._admit, entry)

    def _admit(self, now: float, entry: Entry) -> None:
        self._expire(now)
        try:
            self.queue.offer((entry,), now, replicas=self.replicas)
        except Overloaded as refusal:
            self._on_end(entry, self.loop.spend(now, self._after_s), Ending.REJECTED, refusal.retry_after_s)
        except PayloadTooLarge:
            self._on_end(entry, self.loop.spend(now, self._after_s), Ending.REJECTED)
        else:
            self._unanswered.append(entry)
            self._start_rows(now)

    def _start_rows(self, now: float) -> None:
        while self._idle_since:
            row, expired = self.queue.next_row(now, idle_replicas=len(self._idle_since))
            for entry in expired:
                self._on_end(entry, now, Ending.EXPIRED)
            if row is None:
                return
            pause_s = now - self._idle_since.pop()
            seconds = self._row_times.draw(row.bucket, pause_s, self._rng)
            self._cores.run_row(now, seconds, self._end_row, _Running(row, now))

    def _end_row(self, now: float, running: _Running) -> None:
        self._expire(now)
        row, seconds = running.row, now - running.started_at
        self.queue.latency.observe(row.bucket, seconds)
        self._count(row, seconds)
        self._reply(now, [entry for entry in row.entries if entry.state is State.RUNNING])
        self._idle_since.append(now)
        self._start_rows(now)

    def _reply(self, now: float, entries: list[Entry]) -> None:
        self.loop.spend(now, self._row_s)
        for entry in entries:
            entry.state = State.DONE
            self._on_end(entry, self.loop.spend(now, self._after_s), Ending.ANSWERED)
        self._timeline.at(self.loop.busy_until, self._observe_reply, now)

    def _observe_reply(self, now: float, row_ended_at: float) -> None:
        self.queue.observe_reply(row_ended_at, now)

    def _expire(self, now: float) -> None:
        """End what is past its deadline. The service has timers; looking before each decision comes to the same."""
        while self._unanswered and self._unanswered[0].deadline <= now:
            entry = self._unanswered.popleft()
            if entry.state is not State.DONE:
                self.queue.abandon((entry,))
                self._on_end(entry, entry.deadline, Ending.EXPIRED)

    def _count(self, row: Row, seconds: float) -> None:
        self.rows += 1
        self.row_queries += len(row.entries)
        self.row_tokens += sum(entry.tokens for entry in row.entries)
        self.bucket_tokens += row.bucket
        self.busy_s += seconds
