"""The batching queue, driven by a list of numbers: no clock, no thread, no loop."""

from __future__ import annotations

import gc
import itertools
import weakref
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.batching.latency import LatencyTable
from app.batching.queue import HOST_SECONDS, LONGEST_RETRY_S, SUSTAINED, BatchQueue, Dispatch, Entry, Row, State
from app.errors import Overloaded, PayloadTooLarge
from app.packing import max_segments

# 32 is the most efficient bucket (12,800 tokens a second), 64 the largest.
SECONDS = {8: 0.001, 16: 0.0015, 32: 0.0025, 64: 0.006}
RATE = 12_800 * SUSTAINED
SLO_S = 0.010
FAR = 100.0


def make_queue(
    *,
    max_tokens: int = 1000,
    slo_s: float = SLO_S,
    segments: Callable[[int], int] = max_segments,
    singles_return: bool = True,
) -> BatchQueue:
    table = LatencyTable(SECONDS)
    return BatchQueue(table, slo_s=slo_s, max_tokens=max_tokens, segments=segments, singles_return=singles_return)


def entry(tokens: int, *, at: float = 0.0, deadline: float = FAR, is_bulk: bool = False, owner: object = None) -> Entry:
    return Entry(np.ones(tokens, np.int64), enqueued_at=at, deadline=deadline, is_bulk=is_bulk, owner=owner)


def offer(
    queue: BatchQueue, *tokens: int, at: float = 0.0, deadline: float = FAR, is_bulk: bool = False, replicas: int = 1
) -> list[Entry]:
    """Single queries of these lengths, each a request, or all of them as one list."""
    entries = [entry(each, at=at, deadline=deadline, is_bulk=is_bulk) for each in tokens]
    for request in [entries] if is_bulk else [[each] for each in entries]:
        queue.offer(request, at, replicas=replicas)
    return entries


def refuse(
    queue: BatchQueue,
    tokens: int,
    *,
    at: float = 0.0,
    deadline: float = FAR,
    is_bulk: bool = False,
    replicas: int = 1,
) -> float:
    """Seconds after which a query may come back that is not let in."""
    with pytest.raises(Overloaded) as refusal:
        offer(queue, tokens, at=at, deadline=deadline, is_bulk=is_bulk, replicas=replicas)
    return refusal.value.retry_after_s


def take(queue: BatchQueue, now: float = 0.0, *, idle: int = 1) -> Row:
    row, expired = queue.next_row(now, idle_replicas=idle)
    assert row is not None
    assert expired == []
    return row


class TestFormingARow:
    def test_an_empty_queue_has_none(self) -> None:
        assert make_queue().next_row(0.0, idle_replicas=1) == (None, [])

    def test_a_lone_query_goes_at_once(self) -> None:
        """F11."""
        queue = make_queue()
        (only,) = offer(queue, 5, at=7.0)
        row = take(queue, 7.0)
        assert row.entries == [only]
        assert only.state is State.RUNNING
        assert queue.tokens == len(queue) == 0

    @pytest.mark.parametrize(("tokens", "bucket"), [(1, 8), (8, 8), (9, 16), (16, 16), (17, 32), (64, 64)])
    def test_it_takes_the_smallest_bucket_that_covers_it(self, tokens: int, bucket: int) -> None:
        queue = make_queue()
        offer(queue, tokens)
        assert take(queue).bucket == bucket

    def test_queries_go_first_come_first_served(self) -> None:
        queue = make_queue()
        first, second, third = offer(queue, 10, 10, 10)
        assert take(queue).entries == [first, second, third]

    def test_a_later_query_does_not_overtake_one_that_no_longer_fits(self) -> None:
        queue = make_queue()
        first, second, _ = offer(queue, 40, 40, 4)
        assert take(queue).entries == [first]
        assert take(queue).entries[0] is second

    @pytest.mark.parametrize(("last", "taken"), [(24, 2), (25, 1)])
    def test_a_row_holds_its_tokens_and_not_one_more(self, last: int, taken: int) -> None:
        """F32."""
        queue = make_queue()
        offer(queue, 40, last)
        assert len(take(queue).entries) == taken

    def test_a_row_holds_no_more_queries_than_it_has_segments(self) -> None:
        """F32."""
        queue = make_queue()
        offer(queue, *[1] * 30)
        row = take(queue)
        assert row.bucket == 32
        assert len(row.entries) == max_segments(32)

    def test_a_bucket_must_cover_the_queries_as_well_as_their_tokens(self) -> None:
        """Three queries of one token: eight tokens would do, two segments would not."""
        queue = make_queue()
        offer(queue, 1, 1, 1, 62)
        row = take(queue)
        assert [each.tokens for each in row.entries] == [1, 1, 1]
        assert row.bucket == 16

    def test_a_target_of_one_query_a_row_gets_one(self) -> None:
        queue = make_queue(segments=lambda _bucket: 1)
        first, second = offer(queue, 3, 3)
        assert take(queue).entries == [first]
        assert take(queue).entries == [second]


class TestLists:
    def test_single_queries_go_ahead_of_list_items(self) -> None:
        queue = make_queue()
        listed = offer(queue, 30, 30, is_bulk=True)
        (single,) = offer(queue, 30)
        assert take(queue).entries == [single, listed[0]]
        assert take(queue).entries == [listed[1]]

    def test_list_items_fill_what_single_queries_leave_of_a_row(self) -> None:
        queue = make_queue()
        offer(queue, 10, 10, 10, is_bulk=True)
        offer(queue, 10)
        assert [each.is_bulk for each in take(queue).entries] == [False, True, True, True]

    def test_a_list_goes_over_several_rows_in_order(self) -> None:
        queue = make_queue()
        listed = offer(queue, *[20] * 7, is_bulk=True)
        taken: list[Entry] = []
        while len(queue):
            taken += take(queue).entries
        assert taken == listed


class TestRowBudget:
    @pytest.mark.parametrize(
        ("waited_ms", "bucket"),
        [
            (0.0, 64),
            (3.6, 64),  # 10 - 3.6 - 0.3 of the host leaves 6.1 ms, and a row of 64 takes 6.0
            (3.8, 32),
            (7.1, 32),
            (7.3, 16),
            (8.1, 16),
            (8.3, 8),
            (8.6, 8),
        ],
    )
    def test_the_oldest_query_must_still_meet_the_objective(self, waited_ms: float, bucket: int) -> None:
        queue = make_queue()
        offer(queue, *[4] * 50)
        assert take(queue, waited_ms / 1e3).bucket == bucket

    def test_once_the_objective_is_lost_the_most_efficient_row_shortens_the_wait_of_the_others(self) -> None:
        queue = make_queue()
        offer(queue, *[4] * 50)
        assert take(queue, 0.009).bucket == 32
        assert take(queue, 5.0).bucket == 32

    def test_a_near_deadline_shrinks_the_row(self) -> None:
        queue = make_queue()
        offer(queue, 4, deadline=0.0029)
        offer(queue, *[4] * 50)
        assert take(queue).bucket == 32

    def test_a_far_deadline_does_not_stretch_it(self) -> None:
        queue = make_queue(slo_s=0.003)
        offer(queue, *[4] * 50, deadline=FAR)
        assert take(queue).bucket == 32

    def test_a_query_longer_than_the_budget_still_gets_the_bucket_it_needs(self) -> None:
        queue = make_queue(slo_s=0.0015)
        offer(queue, 20, 4)
        row = take(queue)
        assert (row.bucket, len(row.entries)) == (32, 2)

    def test_budget_follows_the_latency_table(self) -> None:
        queue = make_queue(slo_s=0.007)
        for _ in range(100):
            queue.latency.observe(64, 0.012)
        offer(queue, *[4] * 50)
        assert take(queue).bucket == 32

    @pytest.mark.parametrize(("idle", "bucket"), [(0, 64), (1, 64), (2, 32), (3, 32), (4, 16), (8, 8), (100, 8)])
    def test_idle_replicas_share_what_waits(self, idle: int, bucket: int) -> None:
        queue = make_queue()
        offer(queue, *[4] * 15)
        assert take(queue, idle=idle).bucket == bucket

    def test_all_of_it_is_under_way_once_each_idle_replica_took_its_share(self) -> None:
        queue = make_queue()
        offer(queue, *[4] * 16)
        for idle in (4, 3, 2, 1):
            assert sum(each.tokens for each in take(queue, idle=idle).entries) == 16
        assert len(queue) == 0


class TestWhyARowLeaves:
    """F14: with what it holds, and not with more."""

    def test_nothing_more_waits(self) -> None:
        queue = make_queue()
        offer(queue, 8, 8)

        assert take(queue).dispatch is Dispatch.IDLE

    def test_so_it_is_when_it_is_full_by_the_way(self) -> None:
        queue = make_queue()
        offer(queue, 32, 32)

        assert take(queue).dispatch is Dispatch.IDLE

    def test_nothing_more_fits(self) -> None:
        queue = make_queue()
        offer(queue, 32, 32, 8)

        assert take(queue).dispatch is Dispatch.FULL

    def test_it_has_no_segment_left(self) -> None:
        queue = make_queue(segments=lambda _bucket: 1)
        offer(queue, 8, 8)

        assert take(queue, idle=2).dispatch is Dispatch.FULL

    def test_the_rest_is_for_others_that_idle(self) -> None:
        queue = make_queue()
        offer(queue, *[8] * 8)

        assert [take(queue, idle=idle).dispatch for idle in (2, 1)] == [Dispatch.SHARE, Dispatch.IDLE]

    def test_a_longer_one_would_be_too_late_for_the_objective(self) -> None:
        queue = make_queue()
        offer(queue, *[16] * 8)

        assert take(queue, now=0.005).dispatch is Dispatch.OBJECTIVE

    def test_or_for_the_deadline(self) -> None:
        queue = make_queue()
        offer(queue, 16, deadline=0.004)
        offer(queue, *[16] * 7)

        assert take(queue).dispatch is Dispatch.DEADLINE

    def test_once_the_objective_is_lost_the_most_efficient_row_is_full(self) -> None:
        queue = make_queue()
        offer(queue, *[16] * 8)

        row = take(queue, now=0.5)

        assert (row.bucket, row.dispatch) == (32, Dispatch.FULL)


class TestAdmission:
    @pytest.mark.parametrize("tokens", [1, 60])
    def test_what_waits_is_bounded_in_tokens(self, tokens: int) -> None:
        queue = make_queue(max_tokens=60)
        offer(queue, *[1] * (60 - tokens))
        offer(queue, tokens)
        assert queue.tokens == 60
        with pytest.raises(Overloaded, match="60 of 60 tokens are waiting"):
            offer(queue, 1)
        assert queue.tokens == 60

    def test_room_comes_back_when_a_row_leaves(self) -> None:
        queue = make_queue(max_tokens=60)
        offer(queue, 60)
        take(queue)
        offer(queue, 60)
        assert repr(queue) == "<BatchQueue 1 waiting, 60 of 60 tokens>"

    def test_a_burst_of_ten_times_the_bound_is_taken_up_to_the_bound(self) -> None:
        """F30."""
        queue = make_queue(max_tokens=60)
        refused = 0
        for _ in range(100):
            try:
                offer(queue, 6)
            except Overloaded:
                refused += 1
        assert (len(queue), queue.tokens, refused) == (10, 60, 90)

    def test_a_list_is_admitted_whole_or_not_at_all(self) -> None:
        queue = make_queue(max_tokens=100)
        offer(queue, 41)
        with pytest.raises(Overloaded):
            offer(queue, 20, 20, 20, is_bulk=True)
        assert (len(queue), queue.tokens) == (1, 41)
        offer(queue, 20, 20, 19, is_bulk=True)
        assert (len(queue), queue.tokens) == (4, 100)

    def test_a_list_that_could_never_fit_is_too_large_and_not_to_be_tried_again(self) -> None:
        queue = make_queue(max_tokens=100)
        offer(queue, 50, 50, is_bulk=True)
        queue.drain()
        with pytest.raises(PayloadTooLarge, match="101 tokens in one request; at most 100 can wait"):
            offer(queue, 50, 51, is_bulk=True)

    @pytest.mark.parametrize("is_bulk", [False, True])
    def test_a_query_longer_than_the_longest_row_is_too_large(self, is_bulk: bool) -> None:
        queue = make_queue()
        offer(queue, 64, is_bulk=is_bulk)
        with pytest.raises(PayloadTooLarge, match="65 tokens in one query; a row holds 64"):
            offer(queue, 65, is_bulk=is_bulk)
        assert queue.tokens == 64

    def test_a_query_that_the_backlog_would_make_late_is_refused_now(self) -> None:
        """The tokens up to it, the row that runs and its own, and the reply."""
        queue = make_queue()
        offer(queue, *[32] * 4)
        answer_s = 160 / RATE + 2 * SECONDS[32] + HOST_SECONDS
        with pytest.raises(Overloaded, match="an answer takes 19 ms, the deadline is in 18 ms"):
            offer(queue, 32, deadline=answer_s - 0.001)
        offer(queue, 32, deadline=answer_s + 1e-9)

    def test_behind_a_short_backlog_rows_are_short(self) -> None:
        queue = make_queue()
        offer(queue, 4)
        answer_s = 8 / RATE + 2 * SECONDS[8] + HOST_SECONDS
        refuse(queue, 4, deadline=answer_s - 1e-9)
        offer(queue, 4, deadline=answer_s + 1e-9)

    def test_twice_the_replicas_work_the_backlog_off_in_half_the_time(self) -> None:
        queue = make_queue()
        offer(queue, *[32] * 4)
        refuse(queue, 32, deadline=0.013, replicas=1)
        offer(queue, 32, deadline=0.013, replicas=2)

    def test_with_every_replica_away_one_is_counted_on(self) -> None:
        queue = make_queue()
        offer(queue, 32)
        offer(queue, 32, deadline=0.012, replicas=0)

    def test_nothing_ahead_of_it_means_admitted(self) -> None:
        """The estimate may be wrong, and to come back later would not be better."""
        queue = make_queue()
        offer(queue, 64, deadline=0.001)
        assert len(queue) == 1

    @pytest.mark.parametrize("deadline", [-0.1, 0.0])
    def test_a_query_whose_time_was_up_before_it_came_here_is_refused(self, deadline: float) -> None:
        with pytest.raises(Overloaded, match="the deadline is in 0 ms"):
            offer(make_queue(), 8, deadline=deadline)

    def test_a_single_query_waits_for_single_queries_only_and_a_list_for_all(self) -> None:
        queue = make_queue()
        offer(queue, *[32] * 8, is_bulk=True)
        offer(queue, 4, deadline=0.003)
        with pytest.raises(Overloaded):
            offer(queue, 4, deadline=0.003, is_bulk=True)

    def test_lists_that_are_gone_weigh_nothing_for_the_single_queries_after_them(self) -> None:
        queue = make_queue()
        left = offer(queue, *[32] * 4, is_bulk=True)
        take(queue)
        queue.abandon(left)
        offer(queue, *[32] * 4)
        refuse(queue, 32, deadline=0.018)
        offer(queue, 32, deadline=0.020)


class TestLateReplies:
    """The event loop has more to do than write them, so that a row must end the earlier."""

    def late_queue(self, seconds: float) -> BatchQueue:
        """Its replies have of late been written ``seconds`` after their rows."""
        queue = make_queue()
        for _ in range(100):
            queue.observe_reply(-seconds, 0.0)
        return queue

    def test_who_would_be_late_by_that_is_refused(self) -> None:
        queue = self.late_queue(0.050)
        offer(queue, 4)
        refuse(queue, 4, deadline=0.052)
        offer(queue, 4, deadline=0.053)

    def test_with_nothing_ahead_of_it_as_well(self) -> None:
        queue = self.late_queue(0.050)
        refuse(queue, 4, deadline=0.049)
        offer(queue, 4, deadline=0.051)

    def test_a_loop_of_which_nothing_is_heard_catches_up(self) -> None:
        queue = self.late_queue(0.050)
        refuse(queue, 4, at=0.020, deadline=0.040)
        offer(queue, 4, at=0.031, deadline=0.051)

    def test_one_late_reply_does_not_say_much(self) -> None:
        queue = make_queue()
        queue.observe_reply(-0.050, 0.0)
        offer(queue, 4, deadline=0.010)

    def test_a_row_is_the_shorter_for_a_near_deadline(self) -> None:
        for queue, bucket in ((self.late_queue(0.050), 32), (make_queue(), 64)):
            offer(queue, 4, deadline=0.054)
            offer(queue, *[4] * 15)
            assert take(queue).bucket == bucket


class TestComingBack:
    """F29: who is refused hears when it has a chance, and not the same as everybody else."""

    @pytest.mark.parametrize("replicas", [1, 2])
    def test_it_is_no_earlier_than_there_is_room(self, replicas: int) -> None:
        queue = make_queue(max_tokens=64)
        offer(queue, 64)
        assert refuse(queue, 32, replicas=replicas) == pytest.approx(32 / RATE / replicas)

    def test_it_is_no_earlier_than_the_backlog_leaves_time(self) -> None:
        queue = make_queue()
        offer(queue, *[32] * 4)
        answer_s = 160 / RATE + 2 * SECONDS[32] + HOST_SECONDS
        assert refuse(queue, 32, deadline=0.012) == pytest.approx(answer_s - 0.012)

    def test_each_of_those_who_are_refused_at_once_has_a_turn_of_its_own(self) -> None:
        """A storm comes back as a stream, at the pace at which rows are computed."""
        queue = make_queue()
        offer(queue, *[32] * 4)
        turns = [refuse(queue, 16, deadline=0.012) for _ in range(100)]
        gaps = [later - sooner for sooner, later in itertools.pairwise(turns)]
        assert gaps == pytest.approx([16 / RATE] * 99)

    def test_turns_that_passed_are_not_waited_for(self) -> None:
        queue = make_queue()
        offer(queue, *[32] * 4)
        first, *_, last = (refuse(queue, 32, deadline=0.012) for _ in range(100))
        assert last > first
        later = last + 1.0
        assert refuse(queue, 32, at=later, deadline=later + 0.012) == pytest.approx(first)

    @pytest.mark.parametrize("max_tokens", [1000, 128])
    def test_who_is_answered_by_somebody_else_takes_no_turn(self, max_tokens: int) -> None:
        """Or the clients of lists would wait for the turns of single queries that a fallback has long answered."""
        queue = make_queue(max_tokens=max_tokens, singles_return=False)
        offer(queue, *[32] * 4)
        first = refuse(queue, 16, deadline=0.012)
        assert [refuse(queue, 16, deadline=0.012) for _ in range(100)] == [first] * 100
        turns = [refuse(queue, 16, deadline=0.012, is_bulk=True) for _ in range(3)]
        assert turns == pytest.approx([first, first + 16 / RATE, first + 32 / RATE])

    def test_nobody_is_sent_away_for_long(self) -> None:
        queue = make_queue()
        offer(queue, *[32] * 4)
        *_, last = (refuse(queue, 32, deadline=0.012) for _ in range(5000))
        assert last == LONGEST_RETRY_S


class TestHeldBack:
    def test_it_has_its_place_but_no_row_takes_it_before_it_is_let_in(self) -> None:
        queue = make_queue(max_tokens=20)
        held = [entry(8), entry(6)]
        for each in held:
            queue.offer([each], 0.0, replicas=1, hold=True)
        assert (len(queue), queue.tokens, queue.oldest_age(1.5)) == (2, 14, 1.5)
        refuse(queue, 7)
        assert queue.next_row(0.0, idle_replicas=1) == (None, [])

        (later,) = offer(queue, 5)
        assert queue.let_in() == 2
        assert take(queue).entries == [later, *held]
        assert queue.let_in() == 0

    def test_a_list_that_was_held_is_behind_every_single_query(self) -> None:
        queue = make_queue()
        listed, single = entry(5, is_bulk=True), entry(5)
        for each in (listed, single):
            queue.offer([each], 0.0, replicas=1, hold=True)
        queue.let_in()
        assert take(queue).entries == [single, listed]

    def test_who_ends_meanwhile_is_never_run(self) -> None:
        queue = make_queue()
        gone, stays = entry(5), entry(6)
        for each in (gone, stays):
            queue.offer([each], 0.0, replicas=1, hold=True)
        assert queue.abandon([gone]) == 1
        queue.let_in()
        assert take(queue).entries == [stays]

    def test_a_drain_takes_it_out(self) -> None:
        queue = make_queue()
        held = entry(5)
        queue.offer([held], 0.0, replicas=1, hold=True)
        assert queue.drain() == [held]
        assert (len(queue), queue.tokens, queue.let_in()) == (0, 0, 0)


class TestAloneInTheQueue:
    """With nothing ahead of it a request is judged by its own time."""

    def test_a_list_that_takes_longer_than_its_deadline_is_refused_before_it_costs_anything(self) -> None:
        queue = make_queue()
        with pytest.raises(Overloaded, match="an answer takes"):
            offer(queue, *[32] * 20, deadline=0.060, is_bulk=True)  # 640 tokens are 50 ms
        assert len(queue) == 0
        offer(queue, *[32] * 20, deadline=0.062, is_bulk=True)

    def test_a_single_query_runs_so_that_a_table_that_is_too_slow_by_mistake_is_measured_again(self) -> None:
        queue = make_queue()
        (lone,) = offer(queue, 32, deadline=0.001)
        assert take(queue).entries == [lone]


class TestWhoCanNotBeAnsweredInTime:
    """Is told when a row is formed: a replica has better to do than to compute what comes too late."""

    def test_a_query_whose_row_would_end_too_late_is_dropped(self) -> None:
        queue = make_queue()
        late, fine = *offer(queue, 5, deadline=0.020), *offer(queue, 5, deadline=0.040)
        row, expired = queue.next_row(0.0195, idle_replicas=1)
        assert expired == [late]
        assert late.state is State.DONE
        assert row is not None
        assert row.entries == [fine]

    def test_so_is_one_in_the_middle_of_a_row(self) -> None:
        queue = make_queue()
        first, late, third = *offer(queue, 5), *offer(queue, 5, deadline=0.020), *offer(queue, 5)
        row, expired = queue.next_row(0.0195, idle_replicas=1)
        assert expired == [late]
        assert row is not None
        assert row.entries == [first, third]

    @pytest.mark.parametrize(("left_s", "is_dropped"), [(-1e-6, True), (1e-6, False)])
    def test_its_reply_counts(self, left_s: float, is_dropped: bool) -> None:
        queue = make_queue()
        (first, _) = *offer(queue, 5, deadline=1.0), *offer(queue, 5)
        now = 1.0 - SECONDS[16] - HOST_SECONDS - left_s
        assert queue.next_row(now, idle_replicas=1).expired == [first] * is_dropped

    @pytest.mark.parametrize(("others", "is_dropped"), [(1, False), (7, True)])
    def test_once_the_objective_is_lost_its_row_is_the_one_that_shortens_the_wait_of_the_others(
        self, others: int, is_dropped: bool
    ) -> None:
        """With 2 ms left it could have a row of 16 tokens, but not the one of 32 that a backlog is worth."""
        queue = make_queue()
        (late,) = offer(queue, 5, deadline=0.022)
        offer(queue, *[5] * others)
        row, expired = queue.next_row(0.020, idle_replicas=1)
        assert row is not None
        assert (expired == [late], row.entries[0] is late) == (is_dropped, not is_dropped)

    def test_all_but_the_last_are_dropped_where_all_would_be_late(self) -> None:
        queue = make_queue()
        *others, last = offer(queue, 5, 5, 5, deadline=1.0)
        row, expired = queue.next_row(0.9995, idle_replicas=1)
        assert expired == others
        assert row is not None
        assert row.entries == [last]


class TestEntriesThatEnd:
    def test_an_expired_query_is_reported_and_never_run(self) -> None:
        queue = make_queue()
        late, fine = *offer(queue, 5, deadline=1.0), *offer(queue, 5, deadline=2.0)
        row, expired = queue.next_row(1.5, idle_replicas=1)
        assert expired == [late]
        assert late.state is State.DONE
        assert row is not None
        assert row.entries == [fine]
        assert queue.tokens == len(queue) == 0

    @pytest.mark.parametrize(("now", "runs"), [(0.999, True), (1.0, False), (1.001, False)])
    def test_a_deadline_is_over_when_it_is_reached(self, now: float, runs: bool) -> None:
        queue = make_queue()
        offer(queue, 5, deadline=1.0)
        row, expired = queue.next_row(now, idle_replicas=1)
        assert (row is not None, len(expired)) == (runs, not runs)

    def test_expired_ones_are_reported_even_where_no_row_comes_of_it(self) -> None:
        queue = make_queue()
        singles, listed = offer(queue, 5, 5, deadline=1.0), offer(queue, 5, deadline=1.0, is_bulk=True)
        assert queue.next_row(2.0, idle_replicas=1) == (None, singles + listed)
        assert queue.next_row(2.0, idle_replicas=1) == (None, [])

    def test_an_abandoned_query_is_never_run(self) -> None:
        queue = make_queue()
        first, second, third = offer(queue, 5, 6, 7)
        assert queue.abandon([second]) == 1
        assert (len(queue), queue.tokens) == (2, 12)
        assert take(queue).entries == [first, third]

    def test_abandoning_twice_or_after_the_end_changes_nothing(self) -> None:
        queue = make_queue()
        waiting, running = offer(queue, 5), offer(queue, 6, at=-1.0)
        assert queue.abandon(waiting) == 1
        assert queue.abandon(waiting) == 0
        assert take(queue).entries == running
        assert queue.abandon(running) == 0
        assert running[0].state is State.DONE
        assert queue.tokens == len(queue) == 0

    def test_abandoned_tokens_make_room(self) -> None:
        queue = make_queue(max_tokens=50)
        left = offer(queue, 50)
        queue.abandon(left)
        offer(queue, 50)
        assert len(queue) == 1

    def test_given_up_lists_are_let_go_of_while_single_queries_keep_the_rest_waiting(self) -> None:
        class Owner:
            pass

        queue = make_queue()
        offer(queue, 5)
        owner = Owner()
        listed = [entry(5, is_bulk=True, owner=owner) for _ in range(3)]
        queue.offer(listed, 0.0, replicas=1)
        queue.abandon(listed)
        gone = weakref.ref(owner)
        del owner, listed
        gc.collect()
        assert gone() is None

    def test_a_drain_takes_everything_out(self) -> None:
        queue = make_queue()
        singles, listed = offer(queue, 5, 6), offer(queue, 7, 8, is_bulk=True)
        queue.abandon(singles[:1])
        assert queue.drain() == [singles[1], *listed]
        assert queue.tokens == len(queue) == 0
        assert {each.state for each in listed} == {State.DONE}
        assert queue.drain() == []
        assert queue.next_row(0.0, idle_replicas=1) == (None, [])


class TestWhatIsSeenFromOutside:
    def test_the_oldest_age_is_that_of_the_longest_waiting_query_of_either_kind(self) -> None:
        queue = make_queue()
        assert queue.oldest_age(5.0) == 0.0
        (single,) = offer(queue, 5, at=2.0)
        assert queue.oldest_age(5.0) == 3.0
        offer(queue, 5, at=3.0, is_bulk=True)
        queue.abandon([single])
        assert queue.oldest_age(5.0) == 2.0

    def test_it_says_what_waits(self) -> None:
        queue = make_queue()
        offer(queue, 5, 6)
        assert repr(queue) == "<BatchQueue 2 waiting, 11 of 1000 tokens>"

    def test_an_entry_says_what_it_is(self) -> None:
        assert repr(entry(5)) == "<Entry 5 tokens, waiting>"
        assert repr(entry(5, is_bulk=True)) == "<Entry 5 tokens, waiting, bulk>"


LONGEST_ROW_S = SECONDS[64] + HOST_SECONDS
LENGTHS = st.integers(1, 64)
OPERATIONS = st.one_of(
    st.tuples(st.just("single"), LENGTHS, st.floats(0.0, 0.1)),
    st.tuples(st.just("list"), st.lists(LENGTHS, min_size=1, max_size=12), st.floats(0.0, 0.1)),
    st.tuples(st.just("row"), st.integers(1, 4)),
    st.tuples(st.just("abandon"), st.integers(0, 50)),
    st.tuples(st.just("pass"), st.floats(0.0, 0.02)),
)


@given(operations=st.lists(OPERATIONS, max_size=60), segments=st.sampled_from([max_segments, lambda _bucket: 1]))
def test_whatever_happens_the_books_balance(
    operations: list[tuple[str, object]], segments: Callable[[int], int]
) -> None:
    """F32. No row over its tokens or segments, order kept, nobody waits beside a replica, each ends exactly once."""
    queue = make_queue(max_tokens=300, segments=segments)
    now = 0.0
    admitted: list[Entry] = []
    ended: list[Entry] = []  # run, expired, abandoned or drained

    def waiting() -> list[Entry]:
        return [each for each in admitted if each.state is State.WAITING]

    for kind, *arguments in operations:
        if kind == "pass":
            now += arguments[0]
        elif kind in ("single", "list"):
            lengths = [arguments[0]] if kind == "single" else arguments[0]
            entries = [entry(n, at=now, deadline=now + arguments[1], is_bulk=kind == "list") for n in lengths]
            try:
                queue.offer(entries, now, replicas=1)
            except (Overloaded, PayloadTooLarge):
                continue
            admitted += entries
        elif kind == "abandon":
            left = waiting()[arguments[0] :][:3]
            assert queue.abandon(left) == len(left)
            ended += left
        else:
            before = waiting()
            row, expired = queue.next_row(now, idle_replicas=arguments[0])
            assert all(now + LONGEST_ROW_S >= each.deadline for each in expired)
            ended += expired
            if row is None:
                assert all(now >= each.deadline for each in before)
            else:
                total = sum(each.tokens for each in row.entries)
                assert total <= row.bucket
                assert len(row.entries) <= segments(row.bucket)
                assert all(now < each.deadline for each in row.entries)
                in_turn = [each for each in sorted(before, key=lambda each: each.is_bulk) if each not in expired]
                assert row.entries == in_turn[: len(row.entries)]
                ended += row.entries
        assert len(queue) == len(waiting())
        assert queue.tokens == sum(each.tokens for each in waiting()) <= 300
    ended += queue.drain()
    assert queue.tokens == len(queue) == 0
    assert len(ended) == len(admitted)
    assert set(ended) == set(admitted)
