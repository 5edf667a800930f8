"""The batching queue: which queries form the next row, decided without a clock, a thread or a loop.

The service asks it with real time, the simulator with virtual time, tests with a list of numbers; so what was
simulated is what runs. Callers hold one lock around every method.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.batching.latency import LatencyTable
from app.errors import Overloaded, PayloadTooLarge
from app.packing import max_segments

# What a query costs beside its row: tokenising before, ranking and writing the reply after; `total` less `queue` and
# `inference` in Server-Timing, at the median.
HOST_SECONDS = 0.0003


class State(Enum):
    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"  # answered, failed, expired or abandoned: whatever still arrives for it is dropped


class Entry:
    """One query on its way through the queue: ``token_ids`` [tokens] int64, times in seconds of the caller's clock.

    ``owner`` is the caller's own reference to who waits for it and ``index`` its place there; the queue reads neither.
    """

    __slots__ = ("deadline", "enqueued_at", "index", "is_bulk", "owner", "state", "token_ids", "tokens")

    def __init__(
        self,
        token_ids: NDArray[np.int64],
        *,
        enqueued_at: float,
        deadline: float,
        is_bulk: bool = False,
        owner: Any = None,
        index: int = 0,
    ) -> None:
        self.token_ids = token_ids
        self.tokens = len(token_ids)
        self.enqueued_at = enqueued_at
        self.deadline = deadline
        self.is_bulk = is_bulk  # of a list: single queries go ahead of it
        self.owner = owner
        self.index = index
        self.state = State.WAITING

    def __repr__(self) -> str:
        return f"<Entry {self.tokens} tokens, {self.state.value}{', bulk' if self.is_bulk else ''}>"


class Row(NamedTuple):
    """The entries that go into one pass, and the bucket (row length in tokens) that covers them."""

    bucket: int
    entries: list[Entry]


class Decision(NamedTuple):
    """What to do now: run ``row`` if there is one, tell the ``expired`` that their time is up."""

    row: Row | None
    expired: list[Entry]


class BatchQueue:
    """First come, first served, single queries before lists, bounded in tokens.

    - ``latency`` gives the buckets and what each costs, and follows the service;
    - ``slo_s`` bounds a row: it must still meet the objective for its oldest query;
    - ``max_tokens`` bounds what may wait;
    - ``segments(bucket)`` is how many queries a row of that bucket holds.
    """

    def __init__(
        self,
        latency: LatencyTable,
        *,
        slo_s: float,
        max_tokens: int,
        segments: Callable[[int], int] = max_segments,
    ) -> None:
        self.latency = latency
        self._slo_s = slo_s
        self._max_tokens = max_tokens
        self._segments = {bucket: segments(bucket) for bucket in latency.buckets}
        self._singles: deque[Entry] = deque()
        self._bulk: deque[Entry] = deque()
        self._waiting = 0
        self._single_tokens = 0
        self._bulk_tokens = 0

    @property
    def tokens(self) -> int:
        """Tokens that wait."""
        return self._single_tokens + self._bulk_tokens

    def __len__(self) -> int:
        return self._waiting

    def __repr__(self) -> str:
        return f"<BatchQueue {self._waiting} waiting, {self.tokens} of {self._max_tokens} tokens>"

    def oldest_age(self, now: float) -> float:
        """Seconds that the longest waiting entry has waited; 0 when none waits."""
        heads = [queue[0].enqueued_at for queue in (self._singles, self._bulk) if queue]
        return now - min(heads) if heads else 0.0

    def offer(self, entries: Sequence[Entry], now: float, *, replicas: int) -> None:
        """Admit all of ``entries``, which are one request with one deadline, or none.

        Raises ``PayloadTooLarge`` when they could never fit, ``Overloaded`` when they don't fit now or when the backlog
        on ``replicas`` replicas would make one of them late: a refusal now is worth more than a time-out later.
        """
        tokens = sum(entry.tokens for entry in entries)
        if (longest := max(entry.tokens for entry in entries)) > self.latency.buckets[-1]:
            raise PayloadTooLarge(f"{longest} tokens in one query; a row holds {self.latency.buckets[-1]}")
        if tokens > self._max_tokens:
            raise PayloadTooLarge(f"{tokens} tokens in one request; at most {self._max_tokens} can wait")
        rate = self.latency.tokens_per_second * max(1, replicas)
        if self.tokens + tokens > self._max_tokens:
            excess = self.tokens + tokens - self._max_tokens
            raise Overloaded(f"{self.tokens} of {self._max_tokens} tokens are waiting", retry_after_s=excess / rate)
        # A list waits for everything, a single query only for the single queries before it.
        is_bulk = entries[0].is_bulk
        ahead = self.tokens if is_bulk else self._single_tokens
        finish = now + HOST_SECONDS + (ahead + tokens) / rate
        deadline = entries[0].deadline
        # A lone query is let in whatever the table says, or a table that is too slow by mistake would never be measured
        # again; a list says what it costs by itself.
        if finish > deadline and (ahead or is_bulk):
            raise Overloaded(
                f"the backlog takes {(finish - now) * 1e3:.0f} ms, the deadline is in {(deadline - now) * 1e3:.0f} ms",
                retry_after_s=finish - deadline,
            )
        (self._bulk if is_bulk else self._singles).extend(entries)
        self._waiting += len(entries)
        if is_bulk:
            self._bulk_tokens += tokens
        else:
            self._single_tokens += tokens

    def abandon(self, entries: Iterable[Entry]) -> int:
        """Forget entries whose owner no longer waits; returns how many of them were still waiting."""
        dropped = 0
        for entry in entries:
            if entry.state is State.WAITING:
                self._leave(entry)
                dropped += 1
            entry.state = State.DONE
        # Now and not when their turn comes: single queries may keep that of a list away for as long as the load lasts.
        for queue in (self._singles, self._bulk):
            while queue and queue[0].state is State.DONE:
                queue.popleft()
        return dropped

    def next_row(self, now: float, *, idle_replicas: int) -> Decision:
        """The next row for one of ``idle_replicas`` replicas that could run one at ``now``; never waits for more."""
        expired: list[Entry] = []
        head = self._first(now, expired)
        if head is None:
            return Decision(None, expired)
        budget = self._row_budget(head, now, max(1, idle_replicas))
        limit = self._segments[budget]
        taken: list[Entry] = []
        total = 0
        while head is not None and total + head.tokens <= budget and len(taken) < limit:
            self._leave(head)
            (self._bulk if head.is_bulk else self._singles).popleft()
            head.state = State.RUNNING
            taken.append(head)
            total += head.tokens
            head = self._first(now, expired)
        bucket = next(
            bucket for bucket in self.latency.buckets if bucket >= total and self._segments[bucket] >= len(taken)
        )
        return Decision(Row(bucket, taken), expired)

    def drain(self) -> list[Entry]:
        """Everything that still waits, taken out: for a service that stops."""
        left = [entry for queue in (self._singles, self._bulk) for entry in queue if entry.state is State.WAITING]
        for entry in left:
            self._leave(entry)
            entry.state = State.DONE
        self._singles.clear()
        self._bulk.clear()
        return left

    def _row_budget(self, head: Entry, now: float, idle_replicas: int) -> int:
        """Tokens that the next row may hold.

        The largest bucket with which the oldest query still meets objective and deadline. Once that is lost nothing is
        gained by a short row, so the most efficient one shortens the wait of all the others. Replicas that are idle
        share what waits, so that none idles beside a full queue.
        """
        buckets = self.latency.buckets
        due = min(head.enqueued_at + self._slo_s, head.deadline) - now - HOST_SECONDS
        limit = max((bucket for bucket in buckets if self.latency[bucket] <= due), default=0)
        limit = limit or self.latency.most_efficient_bucket
        share = -(-self.tokens // idle_replicas)
        wanted = next((bucket for bucket in buckets if bucket >= share), buckets[-1])
        return max(min(limit, wanted), next(bucket for bucket in buckets if bucket >= head.tokens))

    def _first(self, now: float, expired: list[Entry]) -> Entry | None:
        """The entry whose turn it is; those before it that ended or expired are taken out."""
        for queue in (self._singles, self._bulk):
            while queue:
                entry = queue[0]
                if entry.state is State.WAITING and now < entry.deadline:
                    return entry
                queue.popleft()
                if entry.state is State.WAITING:
                    self._leave(entry)
                    entry.state = State.DONE
                    expired.append(entry)
        return None

    def _leave(self, entry: Entry) -> None:
        self._waiting -= 1
        if entry.is_bulk:
            self._bulk_tokens -= entry.tokens
        else:
            self._single_tokens -= entry.tokens
