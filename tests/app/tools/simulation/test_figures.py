"""What a run says of itself, checked by hand on a few queries."""

from __future__ import annotations

import pytest

from app.tools.simulation.row_times import RowTimes
from app.tools.simulation.simulator import Simulation
from app.tools.simulation.workload import Workload
from tests.app.tools.simulation.scenarios import at, deployment, one_query_a_row

# Three at once in rows of one query, 6 ms each, so that they are answered after 6, 12 and 18 ms; one long after.
THREE_AND_ONE = at(1.0, 1.0, 1.0, 2.0)


def test_of_each_kind_of_end_it_tells_the_share_of_all_queries() -> None:
    # The second is still running when its time is up; the third would be later still, so it is not let in.
    found = Simulation(deployment(timeout_s=0.011), one_query_a_row(t8=6.0), THREE_AND_ONE, seed=0).run()
    assert found.queries == 4
    assert (found.within_slo_share, found.expired_share, found.rejected_share) == (0.5, 0.25, 0.25)


def test_goodput_counts_answers_within_the_objective_and_percentiles_all_answers() -> None:
    found = Simulation(deployment(slo_s=0.013), one_query_a_row(t8=6.0), THREE_AND_ONE, seed=0).run()
    assert found.rate == 2.0
    assert found.within_slo_share == 0.75
    assert (found.answered, found.goodput) == (2.0, 1.5)
    assert found.p50_ms == pytest.approx(9.0)
    assert found.p99_ms == pytest.approx(18.0, abs=0.2)
    assert found.p99_9_ms == pytest.approx(18.0, abs=0.02)


def test_without_an_answer_there_is_no_percentile() -> None:
    found = Simulation(deployment(timeout_s=0.001), one_query_a_row(t8=6.0), at(1.0, 2.0), seed=0).run()
    assert found.p50_ms is found.p99_ms is found.p99_9_ms is None
    assert found.goodput == 0


def test_what_retries_make_of_it_after_the_last_arrival_is_no_rate_at_this_load() -> None:
    """Of three at once one runs, one waits, and there is no room for the third."""
    once, again = (
        Simulation(deployment(queue_tokens=8), one_query_a_row(t8=6.0), at(1.0, 1.0, 1.0), seed=0, retries=each).run()
        for each in (0, 5)
    )
    assert (once.rejected_share, again.rejected_share) == pytest.approx((1 / 3, 0.0), abs=1e-6)
    assert once.answered == again.answered == 2.0
    assert (once.attempts, again.attempts) == pytest.approx((1.0, 4 / 3), abs=1e-3)


def test_it_tells_how_full_rows_were_and_how_much_of_the_capacity_was_asked_for() -> None:
    workload = Workload(2.0, [1.0, 1.0, 1.0, 2.0], [10, 10, 20, 16])
    found = Simulation(deployment(), RowTimes.stated("16:500,32:800"), workload, seed=0).run()
    # Rows of 10, then 10 and 20, then 16 tokens, in buckets of 16, 32 and 16.
    assert found.queries_a_row == pytest.approx(4 / 3, abs=0.01)
    assert found.row_fill == pytest.approx(56 / 64, abs=1e-4)
    assert found.load == pytest.approx(56 / 2.0 / (32 / 0.8), abs=1e-4)


def test_it_tells_how_busy_workers_were_and_the_busiest_of_them() -> None:
    found = Simulation(
        deployment(workers=2, connections=1, replicas=2, request_s=0.010, row_s=0.020),
        one_query_a_row(t8=100.0),
        at(1.0, 2.0),
        seed=0,
    ).run()
    assert (found.busiest_replicas, found.replicas_busy) == (0.05, 0.025)
    assert (found.busiest_loop, found.loops_busy) == (0.03, 0.015)
