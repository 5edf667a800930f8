"""A worker in virtual time asks the service's queue the way the service does."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from app.batching.queue import Entry
from app.tools.simulation.cores import OwnCores
from app.tools.simulation.row_times import RowTimes
from app.tools.simulation.timeline import Timeline
from app.tools.simulation.worker import Ending, OnEnd, Worker
from tests.app.tools.simulation.scenarios import deployment, one_query_a_row

ANSWERED, REJECTED, EXPIRED = Ending.ANSWERED, Ending.REJECTED, Ending.EXPIRED
# Longer rows cost less a token.
ROW_TIMES = RowTimes.stated("8:4,32:8")


def make_worker(row_times: RowTimes, timeline: Timeline, on_end: OnEnd, **changes: Any) -> Worker:
    return Worker(
        deployment(**changes), row_times, timeline=timeline, cores=OwnCores(timeline), rng=Random(0), on_end=on_end
    )


def ends(row_times: RowTimes, *arrivals: float, tokens: int = 8, **changes: Any) -> list[tuple[float, Ending]]:
    """When, in ms from the start, and how each query ends that arrives at these ms."""
    timeline = Timeline()
    found: dict[int, tuple[float, Ending]] = {}

    def note(entry: Entry, at: float, ending: Ending, retry_after_s: float | None = None) -> None:
        found[entry.index] = (round(at * 1e3, 6), ending)

    worker = make_worker(row_times, timeline, note, **changes)
    for number, milliseconds in enumerate(arrivals):
        timeline.at(
            milliseconds / 1e3, lambda now, n: worker.receive(now, tokens=tokens, number=n, connection=0), number
        )
    timeline.run()
    return [found[number] for number in range(len(arrivals))]


def test_what_came_while_the_replica_was_busy_goes_into_one_row() -> None:
    assert ends(ROW_TIMES, 0, 1, 2, 3, slo_s=0.020) == [(4, ANSWERED), *[(12, ANSWERED)] * 3]


def test_a_row_is_no_longer_than_the_objective_of_its_oldest_query_allows() -> None:
    # At 4 ms the second has waited for 3.9; 8.1 are left, of which the host takes 0.3, and the long row takes 8.
    assert ends(ROW_TIMES, 0, 0.1, 3, slo_s=0.012) == [(4, ANSWERED), (8, ANSWERED), (12, ANSWERED)]


def test_the_event_loop_reads_requests_and_writes_replies_one_after_another() -> None:
    found = ends(one_query_a_row(t8=4.0), 0, 0, replicas=2, request_s=0.002, row_s=0.001)
    # Read at 1 and 2 ms; rows end at 5 and 6; then each row costs 1 ms and its reply another.
    assert found == [(7, ANSWERED), (9, ANSWERED)]


def test_the_deadline_counts_from_when_the_loop_takes_a_request_up() -> None:
    # Read at 1 ms, so that the row ends at 5 and the reply is written at 6.
    assert ends(one_query_a_row(t8=4.0), 0, request_s=0.002, timeout_s=0.0051) == [(6, ANSWERED)]
    assert ends(one_query_a_row(t8=4.0), 0, request_s=0.002, timeout_s=0.0049) == [(4.9, EXPIRED)]


def test_admission_counts_on_every_replica() -> None:
    def endings(replicas: int) -> list[Ending]:
        found = ends(one_query_a_row(t8=4.0), 0, 0, 0, 0, timeout_s=0.013, replicas=replicas)
        return [ending for _, ending in found]

    assert endings(2) == [ANSWERED] * 4
    assert endings(1) == [ANSWERED, ANSWERED, REJECTED, REJECTED]


def test_what_expires_while_it_waits_makes_room_for_others() -> None:
    # The first keeps the replica busy for far longer than the table says; the second waits in a queue that has no room
    # for a third, and expires in it.
    row_times = RowTimes({8: 0.004}, {0.0: {8: [0.050]}}, 8)
    found = ends(row_times, 0, 0.1, 0.2, 25, queue_tokens=15, timeout_s=0.020)
    assert found == [(20, EXPIRED), (20.1, EXPIRED), (0.2, REJECTED), (45, EXPIRED)]


def test_a_query_longer_than_the_bundle_takes_is_cut() -> None:
    row_times = RowTimes({8: 0.004, 32: 0.008}, {}, max_tokens=8)
    assert ends(row_times, 0, tokens=100) == [(4, ANSWERED)]


def test_a_query_that_the_queue_never_has_room_for_is_turned_away() -> None:
    assert ends(ROW_TIMES, 0, tokens=30, queue_tokens=29) == [(0, REJECTED)]


def test_the_table_follows_what_rows_take() -> None:
    timeline = Timeline()
    worker = make_worker(RowTimes({8: 0.001}, {0.0: {8: [0.003]}}, 8), timeline, lambda *_: None)
    for number in range(100):
        timeline.at(number * 0.01, lambda now, n: worker.receive(now, tokens=8, number=n, connection=0), number)
    timeline.run()
    assert worker.queue.latency[8] == pytest.approx(0.003, rel=0.01)


@pytest.mark.parametrize(("timeout_s", "ending"), [(0.013, REJECTED), (0.040, ANSWERED)])
def test_the_queue_hears_how_late_replies_are(timeout_s: float, ending: Ending) -> None:
    """A row takes 1 ms, and the loop 9 for each: nobody has time for that who has 13 for two rows."""
    arrivals = [*range(0, 500, 10), 500, 500, 500]
    found = ends(one_query_a_row(t8=1.0), *arrivals, row_s=0.009, timeout_s=timeout_s)
    assert {each for _, each in found[:50]} == {ANSWERED}
    assert found[-1][1] is ending


def test_the_replica_that_ran_last_runs_first_as_in_the_service() -> None:
    """Its weights are in the cache still; the others pause on, until one is not enough."""
    row_times = RowTimes({8: 0.001}, {0.0: {8: [0.001]}, 0.0045: {8: [0.004]}}, 8)
    spread = [14, 15, 17, 20]  # the first pauses from the start, and none after it for 4.5 ms
    assert [at for at, _ in ends(row_times, 10, 13, 16, 19)] == spread
    assert [at for at, _ in ends(row_times, 10, 14, 16, 19, replicas=3)] == spread
    assert [at for at, _ in ends(row_times, 10, 14, 14.5, replicas=3)] == [14, 15, 18.5]
