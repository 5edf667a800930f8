"""The batching queue: which queries form the next row, decided without a clock, a thread or a loop.

The service asks it with real time, the simulator with virtual time, tests with a list of numbers; so what was
simulated is what runs. Callers hold one lock around every method.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence

from app.batching.entry import Decision, Dispatch, Entry, Row, State
from app.batching.latency import LatencyTable
from app.errors import Overloaded, PayloadTooLarge
from app.packing import max_segments

# What a query costs beside its row: tokenising before, ranking and writing the reply after; `total` less `queue` and
# `inference` in Server-Timing, at the median.
HOST_SECONDS = 0.0003
# What saturated replicas reach of the rate that the latency table promises for full rows, and the rows that a query
# waits for beside the tokens up to it: what is left of the one that runs, and all of its own. ARCHITECTURE.md has
# what they give in the simulator.
SUSTAINED = 0.9
ROWS_BESIDE = 2
# Weight of a new measurement of how late replies are; TCP's for round trips (RFC 6298).
REPLY_SMOOTHING = 1 / 8
# Nobody is told to come back later than this: what will be by then is anybody's guess.
LONGEST_RETRY_S = 10.0


class BatchQueue:
    """First come, first served, single queries before lists, bounded in tokens.

    - ``latency`` gives the buckets and what each costs, and follows the service;
    - ``slo_s`` bounds a row: it must still meet the objective for its oldest query;
    - ``max_tokens`` bounds what may wait;
    - ``segments(bucket)`` is how many queries a row of that bucket holds;
    - ``singles_return`` unless a single query that is refused is answered by somebody else and so doesn't come back.

    A deadline is the reply's: its row must have ended earlier, by what replies of late took after their rows.
    """

    def __init__(
        self,
        latency: LatencyTable,
        *,
        slo_s: float,
        max_tokens: int,
        segments: Callable[[int], int] = max_segments,
        singles_return: bool = True,
    ) -> None:
        self.latency = latency
        self._slo_s = slo_s
        self._max_tokens = max_tokens
        self._singles_return = singles_return
        self._segments = {bucket: segments(bucket) for bucket in latency.buckets}
        self._singles: deque[Entry] = deque()
        self._bulk: deque[Entry] = deque()
        self._held: list[Entry] = []
        self._waiting = 0
        self._single_tokens = 0
        self._bulk_tokens = 0
        self._reply_s = HOST_SECONDS  # what replies took of late, and when that was known
        self._reply_known_at = 0.0
        self._turn_at = 0.0  # when the next one who is refused may come back

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
        heads = [queue[0].enqueued_at for queue in (self._singles, self._bulk, self._held) if queue]
        return now - min(heads) if heads else 0.0

    def offer(self, entries: Sequence[Entry], now: float, *, replicas: int, hold: bool = False) -> None:
        """Admit all of ``entries``, which are one request with one deadline, or none.

        With ``hold`` they have their place from now on, but no row takes them before ``let_in``.

        Raises ``PayloadTooLarge`` when they could never fit, ``Overloaded`` when they don't fit now or when the backlog
        on ``replicas`` replicas would make one of them late: a refusal now is worth more than a time-out later.
        """
        tokens = sum(entry.tokens for entry in entries)
        if (longest := max(entry.tokens for entry in entries)) > self.latency.buckets[-1]:
            raise PayloadTooLarge(f"{longest} tokens in one query; a row holds {self.latency.buckets[-1]}")
        if tokens > self._max_tokens:
            raise PayloadTooLarge(f"{tokens} tokens in one request; at most {self._max_tokens} can wait")
        rate = SUSTAINED * self.latency.tokens_per_second * max(1, replicas)
        is_bulk = entries[0].is_bulk
        own_s = tokens / rate if is_bulk or self._singles_return else None
        if (excess := self.tokens + tokens - self._max_tokens) > 0:
            detail = f"{self.tokens} of {self._max_tokens} tokens are waiting"
            raise self._refusal(detail, now, excess_s=excess / rate, own_s=own_s)
        # A list waits for everything, a single query only for the single queries before it.
        ahead = self.tokens if is_bulk else self._single_tokens
        row_tokens = min(ahead + tokens, self.latency.most_efficient_bucket)
        row_s = self.latency[self.latency.bucket_for(row_tokens)]
        reply_s = self._reply_seconds(now)
        answer_s = (ahead + tokens) / rate + ROWS_BESIDE * row_s + reply_s
        left_s = entries[0].deadline - now
        # A lone query is let in whatever the table says, or a table that is too slow by mistake would never be measured
        # again; a list says what it costs by itself.
        if answer_s > left_s and (ahead or is_bulk or reply_s > left_s):
            detail = f"an answer takes {answer_s * 1e3:.0f} ms, the deadline is in {max(0.0, left_s) * 1e3:.0f} ms"
            raise self._refusal(detail, now, excess_s=answer_s - left_s, own_s=own_s)
        if hold:
            self._held += entries
        else:
            (self._bulk if is_bulk else self._singles).extend(entries)
        self._waiting += len(entries)
        if is_bulk:
            self._bulk_tokens += tokens
        else:
            self._single_tokens += tokens

    def let_in(self) -> int:
        """Let rows take what was held; returns how many entries that were."""
        held, self._held = self._held, []
        for entry in held:
            if entry.state is State.WAITING:
                (self._bulk if entry.is_bulk else self._singles).append(entry)
        return len(held)

    def give_back(self, entries: Sequence[Entry]) -> None:
        """Let ``entries`` of a row that didn't run wait again, in their order and ahead of everybody."""
        for entry in reversed(entries):
            entry.state = State.WAITING
            self._waiting += 1
            if entry.is_bulk:
                self._bulk.appendleft(entry)
                self._bulk_tokens += entry.tokens
            else:
                self._singles.appendleft(entry)
                self._single_tokens += entry.tokens

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
        """The next row for one of ``idle_replicas`` replicas that could run one at ``now``; never waits for more.

        Who can't be answered in time any more has expired: a replica has better to do. With nobody else waiting it has
        not, and it may be the table that is wrong.
        """
        expired: list[Entry] = []
        head = self._first(now, expired)
        while head is not None:
            budget, bound = self._row_budget(head, now, max(1, idle_replicas))
            replied_at = now + self.latency[budget] + self._reply_seconds(now)
            if replied_at < head.deadline or self._waiting == 1:
                break
            self._expire(head, expired)
            head = self._first(now, expired)
        if head is None:
            return Decision(None, expired)
        limit = self._segments[budget]
        taken: list[Entry] = []
        total = 0
        while head is not None and total + head.tokens <= budget and len(taken) < limit:
            self._leave(head)
            (self._bulk if head.is_bulk else self._singles).popleft()
            head.state = State.RUNNING
            taken.append(head)
            total += head.tokens
            head = self._first(replied_at, expired)
        bucket = next(
            bucket for bucket in self.latency.buckets if bucket >= total and self._segments[bucket] >= len(taken)
        )
        if not self._waiting:
            bound = Dispatch.IDLE
        elif len(taken) == limit:
            bound = Dispatch.FULL
        return Decision(Row(bucket, taken, bound), expired)

    def observe_reply(self, row_ended_at: float, now: float) -> None:
        """The last reply of a row is written: the later, the more the event loop has to do beside."""
        self._reply_s += REPLY_SMOOTHING * (now - row_ended_at - self._reply_s)
        self._reply_known_at = now

    def drain(self) -> list[Entry]:
        """Everything that still waits, taken out: for a service that stops."""
        self.let_in()
        left = [entry for queue in (self._singles, self._bulk) for entry in queue if entry.state is State.WAITING]
        for entry in left:
            self._leave(entry)
            entry.state = State.DONE
        self._singles.clear()
        self._bulk.clear()
        return left

    def _row_budget(self, head: Entry, now: float, idle_replicas: int) -> tuple[int, Dispatch]:
        """Tokens that the next row may hold, and what bounds them.

        The largest bucket with which the oldest query still meets objective and deadline. Once that is lost nothing is
        gained by a short row, so the most efficient one shortens the wait of all the others. Replicas that are idle
        share what waits, so that none idles beside a full queue.
        """
        by_objective = head.enqueued_at + self._slo_s - HOST_SECONDS - now
        by_deadline = head.deadline - self._reply_seconds(now) - now
        due = min(by_objective, by_deadline)
        limit = max((bucket for bucket in self.latency.buckets if self.latency[bucket] <= due), default=0)
        if limit in (0, self.latency.buckets[-1]):
            limit, bound = limit or self.latency.most_efficient_bucket, Dispatch.FULL
        else:
            bound = Dispatch.OBJECTIVE if by_objective <= by_deadline else Dispatch.DEADLINE
        share = self.latency.bucket_for(-(-self.tokens // idle_replicas))
        if share < limit:
            limit, bound = share, Dispatch.SHARE
        return max(limit, self.latency.bucket_for(head.tokens)), bound

    def _reply_seconds(self, now: float) -> float:
        """What replies take after their row: an event loop that was late has caught up by so much since."""
        return max(HOST_SECONDS, self._reply_s - (now - self._reply_known_at))

    def _refusal(self, detail: str, now: float, *, excess_s: float, own_s: float | None) -> Overloaded:
        """Says when to come back: once ``excess_s`` of the backlog is worked off, and not before whoever was refused
        earlier has had its ``own_s``; None where this one won't come back.

        So those who were refused at once come back one after another, at the pace at which they can be computed.
        Told the same they would come back at once, and told the same and some jitter nearly so.
        """
        turn_at = min(max(self._turn_at, now + excess_s), now + LONGEST_RETRY_S)
        if own_s is not None:
            self._turn_at = turn_at + own_s
        return Overloaded(detail, retry_after_s=turn_at - now)

    def _first(self, too_late: float, expired: list[Entry]) -> Entry | None:
        """The entry whose turn it is; those before it that ended, or are due by ``too_late``, are taken out."""
        for queue in (self._singles, self._bulk):
            while queue:
                entry = queue[0]
                if entry.state is not State.WAITING:
                    queue.popleft()
                elif entry.deadline > too_late:
                    return entry
                else:
                    self._expire(entry, expired)
        return None

    def _expire(self, entry: Entry, expired: list[Entry]) -> None:
        """Take out the first of its deque."""
        (self._bulk if entry.is_bulk else self._singles).popleft()
        self._leave(entry)
        entry.state = State.DONE
        expired.append(entry)

    def _leave(self, entry: Entry) -> None:
        self._waiting -= 1
        if entry.is_bulk:
            self._bulk_tokens -= entry.tokens
        else:
            self._single_tokens -= entry.tokens
