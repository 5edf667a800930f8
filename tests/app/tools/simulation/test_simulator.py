"""The simulation as a whole: what queueing theory says of it, what never happens, and what it was built to predict."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.tools.arrivals import Law
from app.tools.simulation.figures import Figures
from app.tools.simulation.row_times import RowTimes
from app.tools.simulation.simulator import Simulation
from app.tools.simulation.worker import Ending
from app.tools.simulation.workload import Traffic, Workload
from tests.app.tools.simulation.scenarios import PRODUCTS, Alternately, at, deployment, one_query_a_row, poisson

THREE_MS = RowTimes.stated("3")
ONE_MS = one_query_a_row(t8=1.0)
SIXTEEN_CORES = {"workers": 4, "replicas": 4, "request_s": 100e-6, "row_s": 100e-6, "timeout_s": 0.1}


def simulate(
    workload: Workload, row_times: RowTimes = ONE_MS, *, seed: int = 0, retries: int = 0, **changes: Any
) -> Simulation:
    simulation = Simulation(deployment(**changes), row_times, workload, seed=seed, retries=retries)
    simulation.run()
    return simulation


def figures(
    workload: Workload, row_times: RowTimes = ONE_MS, *, seed: int = 0, retries: int = 0, **changes: Any
) -> Figures:
    return Simulation(deployment(**changes), row_times, workload, seed=seed, retries=retries).run()


class TestAgainstQueueingTheory:
    """Where the model is one that has a formula, with one query a row."""

    @pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
    def test_one_replica_is_an_m_d_1_queue(self, load: float) -> None:
        """Pollaczek and Khinchine: the mean wait is rho / (2 (1 - rho)) service times."""
        found = simulate(poisson(load * 1000, requests=30_000)).latencies_s.mean()
        assert found == pytest.approx(0.001 * (1 + load / (2 * (1 - load))), rel=0.03)

    def test_two_lengths_of_row_are_an_m_g_1_queue(self) -> None:
        """The same formula with the variance of the service time: lambda E[S²] / (2 (1 - rho))."""
        row_times = one_query_a_row(t8=1.0, t16=4.0)
        workload = poisson(280, requests=40_000, lengths=Alternately(8, 16))
        workload = Workload(
            workload.rate, workload.at_s, np.random.default_rng(1).permutation(workload.tokens).tolist()
        )
        mean_s, mean_square = 0.0025, (1e-6 + 16e-6) / 2
        wait_s = 280 * mean_square / (2 * (1 - 280 * mean_s))
        assert simulate(workload, row_times).latencies_s.mean() == pytest.approx(mean_s + wait_s, rel=0.05)

    def test_replicas_that_share_a_core_are_a_processor_sharing_queue(self) -> None:
        """The mean time in the system is S / (1 - rho), whatever the distribution of S."""
        found = simulate(poisson(600, requests=20_000), replicas=500, shared_cores=1).latencies_s.mean()
        assert found == pytest.approx(0.001 / (1 - 0.6), rel=0.03)

    def test_what_is_busy_follows_the_utilisation_law(self) -> None:
        found = figures(poisson(1200), replicas=3, request_s=200e-6, row_s=100e-6)
        assert found.replicas_busy == pytest.approx(1200 * 0.001 / 3, rel=0.01)
        assert found.loops_busy == pytest.approx(1200 * 300e-6, rel=0.01)

    def test_an_endless_backlog_is_worked_off_at_the_speed_of_full_rows(self) -> None:
        workload = at(*np.linspace(1e-6, 2e-6, 10_000), tokens=8)
        found = simulate(workload, RowTimes.stated("16:1,64:3"), replicas=2)
        assert found.latencies_s.max() == pytest.approx(10_000 / 8 * 0.003 / 2, rel=0.01)


class TestALoneQuery:
    def test_takes_its_row_and_what_the_event_loop_does_for_it(self) -> None:
        (latency_s,) = simulate(at(1.0), request_s=200e-6, row_s=50e-6).latencies_s
        assert latency_s == pytest.approx(0.001 + 250e-6)

    def test_is_answered_at_the_same_speed_by_cores_that_are_shared_but_idle(self) -> None:
        (latency_s,) = simulate(at(1.0), request_s=200e-6, row_s=50e-6, shared_cores=1).latencies_s
        assert latency_s == pytest.approx(0.001 + 250e-6)


class TestWhatNeverHappens:
    @settings(max_examples=40)
    @given(
        rate=st.floats(100, 30_000),
        workers=st.integers(1, 4),
        replicas=st.integers(1, 4),
        shared_cores=st.one_of(st.none(), st.integers(4, 6)),
        connections=st.integers(1, 40),
        request_s=st.floats(0, 0.002),
        row_s=st.floats(0, 0.001),
        timeout_s=st.floats(0.001, 0.1),
        queue_tokens=st.sampled_from([16, 200, 10_000]),
        seed=st.integers(0, 5),
    )
    def test_a_query_without_an_end(self, rate: float, seed: int, **changes: Any) -> None:
        """Every arrival is answered, rejected or expired, once, and not before it came."""
        workload = poisson(rate, requests=300, seed=seed)
        found = simulate(workload, RowTimes.stated("8:1,16:1.5,48:4"), seed=seed, **changes)
        assert set(found.endings.tolist()) <= {Ending.ANSWERED, Ending.REJECTED, Ending.EXPIRED}
        assert (found.latencies_s >= 0).all()

    @pytest.mark.parametrize("shared_cores", [None, 2])
    def test_the_same_seed_with_another_result(self, shared_cores: int | None) -> None:
        changes = {"workers": 2, "replicas": 2, "request_s": 1e-4, "shared_cores": shared_cores, "connections": 8}
        row_times = RowTimes({8: 0.001, 48: 0.003}, {0.0: {8: [0.001, 0.002], 48: [0.003, 0.004]}}, 48)
        one, same, other = (
            simulate(poisson(500, requests=2000), row_times, seed=seed, **changes) for seed in (1, 1, 2)
        )
        assert one.latencies_s.tolist() == same.latencies_s.tolist()
        assert one.latencies_s.tolist() != other.latencies_s.tolist()

    @pytest.mark.parametrize("rate", [1000, 4000, 12_000])
    def test_a_service_made_worse_by_more_cores(self, rate: float) -> None:
        row_times = RowTimes.stated("3")
        found = [
            figures(poisson(rate, requests=5000), row_times, replicas=replicas, timeout_s=0.1)
            for replicas in (1, 2, 4, 8, 16)
        ]
        for fewer, more in itertools.pairwise(found):
            assert fewer.p99_ms is not None
            assert more.p99_ms is not None
            assert more.p99_ms <= max(1.01 * fewer.p99_ms, 100.0)  # past saturation all are near the deadline
            assert more.goodput >= fewer.goodput
            assert more.answered >= fewer.answered


class TestOverload:
    """Past what rows of 64 tokens in 3 ms can compute of queries of 8."""

    CAPACITY = 64 / 8 / 0.003

    def overload(
        self, load: float, row_times: RowTimes = THREE_MS, *, law: Law = "poisson", **changes: Any
    ) -> Simulation:
        replicas = changes.get("replicas", 1)
        rate = load * replicas * self.CAPACITY
        workload = Traffic(law, None, Alternately(8), int(2 * rate), 0).workload(rate)  # for two seconds
        return simulate(workload, row_times, **changes)

    def answered(self, simulation: Simulation, **changes: Any) -> float:
        """Of what could be computed meanwhile, the share that was in time."""
        share = (simulation.endings == Ending.ANSWERED).sum() / (2 * changes.get("replicas", 1) * self.CAPACITY)
        return float(share)

    def test_at_three_times_what_can_be_computed_nearly_as_much_is_answered(self) -> None:
        workload = poisson(3 * self.CAPACITY, requests=8000, lengths=Alternately(8))
        found = figures(workload, THREE_MS, timeout_s=0.1)
        assert (1 - found.rejected_share - found.expired_share) * found.rate >= 0.9 * self.CAPACITY

    @pytest.mark.parametrize("load", [1.2, 3.0, 5.0])
    @pytest.mark.parametrize("timeout_s", [0.02, 0.1, 0.4])
    @pytest.mark.parametrize("replicas", [1, 2])
    def test_nor_does_it_matter_by_how_much_or_how_long_callers_wait(
        self, load: float, timeout_s: float, replicas: int
    ) -> None:
        found = self.overload(load, timeout_s=timeout_s, replicas=replicas)
        assert self.answered(found, replicas=replicas) >= 0.9
        assert (found.endings == Ending.EXPIRED).mean() <= 0.01

    def test_nor_do_bursts_make_a_difference(self) -> None:
        found = self.overload(3.0, law="bursty", timeout_s=0.1)
        assert self.answered(found) >= 0.9
        assert (found.endings == Ending.EXPIRED).mean() <= 0.01

    def test_nor_rows_that_take_now_half_and_now_twice_as_long(self) -> None:
        chance = np.random.default_rng(0)
        row_times = RowTimes({64: 0.003}, {0.0: {64: (0.003 * chance.lognormal(-0.18, 0.6, 400)).tolist()}}, 64)
        found = self.overload(3.0, row_times, timeout_s=0.02)
        assert self.answered(found) >= 0.9
        assert (found.endings == Ending.EXPIRED).mean() <= 0.06

    def test_nor_a_table_that_was_half_as_long_at_the_start(self) -> None:
        row_times = RowTimes({64: 0.0015}, {0.0: {64: [0.003]}}, 64)
        found = self.overload(3.0, row_times, timeout_s=0.1)
        assert self.answered(found) >= 0.85
        assert (found.endings == Ending.EXPIRED).mean() <= 0.05

    def test_no_answer_is_late_and_hardly_a_row_is_spent_on_what_would_be(self) -> None:
        found = self.overload(3.0, timeout_s=0.1)
        is_answered = found.endings == Ending.ANSWERED
        assert found.latencies_s[is_answered].max() <= 0.1
        ran = sum(worker.row_queries for worker in found.workers)
        assert ran <= 1.01 * is_answered.sum()

    def test_who_is_refused_hears_at_once(self) -> None:
        found = self.overload(3.0, timeout_s=0.1)
        is_rejected = found.endings == Ending.REJECTED
        assert is_rejected.mean() > 0.6
        assert found.latencies_s[is_rejected].max() == 0.0

    def test_replies_that_wait_for_a_busy_event_loop_are_not_late_either(self) -> None:
        """A row in 3 ms costs the loop 1.5, and what it is asked for takes 4 tenths of its time."""
        found = self.overload(3.0, timeout_s=0.02, request_s=0.4 / 3 / self.CAPACITY, row_s=0.0015)
        assert self.answered(found) >= 0.9
        assert np.percentile(found.latencies_s[found.endings == Ending.ANSWERED], 99) <= 0.0205

    @pytest.mark.parametrize("timeout_s", [0.05, 0.1])
    def test_below_saturation_nobody_is_refused(self, timeout_s: float) -> None:
        found = self.overload(0.8, timeout_s=timeout_s)
        assert set(found.endings.tolist()) == {Ending.ANSWERED}

    def test_once_the_load_drops_everybody_is_answered(self) -> None:
        chance = np.random.default_rng(0)
        overload, calm = chance.uniform(0, 2, int(6 * self.CAPACITY)), chance.uniform(2, 4, int(self.CAPACITY))
        found = simulate(at(*np.sort([*overload, *calm])), THREE_MS, timeout_s=0.1)
        assert set(found.endings[found.sent_s > 2.1].tolist()) == {Ending.ANSWERED}

    def test_nobody_is_told_later_than_at_the_deadline(self) -> None:
        """Not even where rows take ten times as long as the table says."""
        row_times = RowTimes({64: 0.003}, {0.0: {64: [0.030]}}, 64)
        found = self.overload(3.0, row_times, timeout_s=0.1)
        assert {Ending.REJECTED, Ending.EXPIRED} < set(found.endings.tolist())
        assert found.latencies_s.max() <= 0.1 + 1e-9

    def test_a_query_is_given_up_at_its_deadline_even_while_its_row_runs(self) -> None:
        found = simulate(at(1.0), one_query_a_row(t8=50.0), timeout_s=0.020)
        assert found.endings.tolist() == [Ending.EXPIRED]
        assert found.latencies_s == pytest.approx([0.020])

    def test_a_full_queue_turns_a_query_away_at_once(self) -> None:
        found = simulate(at(1.0, 1.001, 1.002, 1.003), one_query_a_row(t8=50.0), queue_tokens=16)
        assert found.endings.tolist() == [Ending.ANSWERED, Ending.ANSWERED, Ending.ANSWERED, Ending.REJECTED]
        assert found.latencies_s == pytest.approx([0.050, 0.099, 0.148, 0.0])


class TestRetryStorms:
    """F29: clients that were refused come back when they were told to."""

    def test_all_who_came_at_once_are_answered_at_the_second_try(self) -> None:
        """Half as much as can be computed comes all the time, and then twelve times what fits into the timeout."""
        capacity = TestOverload.CAPACITY
        chance = np.random.default_rng(0)
        steady, storm = chance.uniform(0, 6, int(0.5 * capacity * 6)), chance.uniform(1, 1.001, int(1.2 * capacity))
        found = simulate(at(*np.sort([*steady, *storm])), THREE_MS, timeout_s=0.1, retries=10)
        assert (found.endings == Ending.ANSWERED).mean() >= 0.98
        assert found.attempts.mean() <= 2.2
        assert found.ended_s.max() <= 6.2

    def test_as_much_is_answered_in_an_overload_of_which_all_comes_back(self) -> None:
        capacity = TestOverload.CAPACITY
        workload = poisson(3 * capacity, requests=int(12 * capacity), lengths=Alternately(8))
        found = figures(workload, THREE_MS, timeout_s=0.1, retries=3)
        assert found.answered >= 0.9 * capacity
        assert found.expired_share <= 0.01
        assert found.attempts <= 2.5


class TestConnections:
    def test_a_connection_stays_with_its_worker_whatever_the_others_do(self) -> None:
        found = figures(poisson(800, requests=5000), workers=4, connections=1)
        assert found.busiest_replicas == pytest.approx(0.8, rel=0.05)
        assert found.replicas_busy == pytest.approx(found.busiest_replicas / 4, rel=0.01)

    def test_many_connections_spread_the_load(self) -> None:
        found = figures(poisson(3200, requests=5000), workers=4, connections=1000)
        assert found.busiest_replicas == pytest.approx(found.replicas_busy, rel=0.15)

    def test_one_queue_for_all_cores_has_a_shorter_tail_than_one_for_each(self) -> None:
        workload = poisson(3200, requests=5000)
        pooled, apart = figures(workload, replicas=4), figures(workload, workers=4, connections=1000)
        assert pooled.p99_ms is not None
        assert apart.p99_ms is not None
        assert 2 * pooled.p99_ms < apart.p99_ms


class TestSixteenCores:
    """16 cores in 4 workers, 3 ms a row, 16,000 queries a second: the service was drawn to hold 10 ms there."""

    @pytest.mark.parametrize("connections", [64, 512])
    @pytest.mark.parametrize("seed", range(2))
    def test_the_tail_of_poisson_arrivals_is_under_10_ms(self, connections: int, seed: int) -> None:
        workload = poisson(16_000, seed=seed)
        found = figures(workload, RowTimes.stated("3"), seed=seed, connections=connections, **SIXTEEN_CORES)
        assert found.p99_ms is not None
        assert found.p99_ms < 10
        assert found.within_slo_share > 0.999
        assert found.rejected_share == found.expired_share == 0

    def test_bursts_are_what_it_does_not_hold(self) -> None:
        bursty = Traffic("bursty", None, PRODUCTS, 32_000, 0).workload(16_000)
        found = figures(bursty, RowTimes.stated("3"), connections=64, **SIXTEEN_CORES)
        assert found.within_slo_share < 0.9


class TestRowFill:
    @pytest.mark.parametrize("replicas", [1, 4])
    def test_at_four_times_what_can_be_computed_rows_are_full(self, replicas: int) -> None:
        """F14: single queries that come one by one are packed as soon as they wait for one another."""
        capacity = replicas * 64 / 9 / 0.003
        found = figures(poisson(4 * capacity, requests=8000), RowTimes.stated("3"), replicas=replicas, timeout_s=0.1)
        assert found.row_fill >= 0.9
        assert found.replicas_busy > 0.95
