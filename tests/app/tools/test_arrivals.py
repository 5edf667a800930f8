from __future__ import annotations

import asyncio
import math
import os
import time
from array import array
from pathlib import Path

import numpy as np
import pytest

from app.tools.arrivals import LATE_NS, OpenLoop, lag_report, read_queries, realtime_priority, schedule


def test_poisson_gaps_are_exponential() -> None:
    gaps_s = np.diff(schedule("poisson", rate=1000, duration_s=20, seed=7)) / 1e9
    assert gaps_s.mean() == pytest.approx(1e-3, rel=0.03)
    assert gaps_s.std() == pytest.approx(1e-3, rel=0.03)
    for multiple in (0.1, 1, 3):  # P(gap > k means) = e^-k
        assert (gaps_s > multiple * 1e-3).mean() == pytest.approx(math.exp(-multiple), abs=0.015)


def test_a_seed_names_one_schedule() -> None:
    first, again, other = (schedule("poisson", rate=500, duration_s=2, seed=seed) for seed in (1, 1, 2))
    assert first.tolist() == again.tolist()
    assert first[:10].tolist() != other[:10].tolist()


def test_constant_arrivals_are_evenly_spaced() -> None:
    assert schedule("constant", rate=4, duration_s=1.1, seed=0).tolist() == [250_000_000 * n for n in (1, 2, 3, 4)]


@pytest.mark.parametrize("arrivals", ["poisson", "constant"])
@pytest.mark.parametrize("rate", [0.001, 3, 2000])
def test_a_schedule_ascends_and_ends_before_the_duration(arrivals: str, rate: float) -> None:
    offsets_ns = schedule(arrivals, rate=rate, duration_s=1.5, seed=3)
    assert (np.diff(offsets_ns) >= 0).all()
    assert (offsets_ns < 1_500_000_000).all()


def test_each_request_is_sent_once_in_order_and_never_early() -> None:
    offsets_ns = schedule("poisson", rate=2000, duration_s=0.2, seed=5)
    sent: list[tuple[int, int]] = []

    async def run() -> tuple[array[int], array[int]]:
        intended_ns = array("q", (offsets_ns + time.monotonic_ns()).tolist())
        open_loop = OpenLoop(intended_ns, lambda number: sent.append((number, time.monotonic_ns())))
        await open_loop.run()
        return intended_ns, open_loop.lag_ns

    intended_ns, lag_ns = asyncio.run(run())
    assert [number for number, _ in sent] == list(range(len(offsets_ns)))
    assert all(intended <= at_ns for intended, (_, at_ns) in zip(intended_ns, sent, strict=True))
    assert min(lag_ns) >= 0


def test_waiting_for_the_next_request_costs_no_cpu() -> None:
    async def run() -> float:
        start_ns = time.monotonic_ns()
        open_loop = OpenLoop(array("q", [start_ns + n * 99_700_000 for n in range(6)]), lambda _: None)
        cpu_at_start_s = time.thread_time()
        await open_loop.run()
        return time.thread_time() - cpu_at_start_s

    assert asyncio.run(run()) < 0.1  # of half a second


def test_an_error_while_sending_ends_the_run() -> None:
    def send(number: int) -> None:
        raise ZeroDivisionError(number)

    async def run() -> None:
        await OpenLoop(array("q", [time.monotonic_ns() + 1_000_000]), send).run()

    with pytest.raises(ZeroDivisionError):
        asyncio.run(run())


@pytest.mark.parametrize(("late", "is_void"), [(0, False), (1, False), (2, True), (1000, True)])
def test_a_run_is_void_when_more_than_one_send_in_a_thousand_is_late(late: int, is_void: bool) -> None:
    lag_ns = np.full(1000, LATE_NS)  # exactly a millisecond is not late
    lag_ns[:late] += 1
    found = lag_report(lag_ns)
    assert found["void"] is is_void
    assert found["late_share"] == late / 1000


def test_the_thread_gets_its_priority_back() -> None:
    before = os.sched_getscheduler(0)
    with realtime_priority() as is_realtime:
        assert os.sched_getscheduler(0) == (os.SCHED_FIFO if is_realtime else before)
    assert os.sched_getscheduler(0) == before


def test_without_the_permission_the_priority_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    with realtime_priority() as is_realtime:
        assert not is_realtime


def test_a_text_file_holds_a_query_a_line(tmp_path: Path) -> None:
    (tmp_path / "queries.txt").write_text("\ufeffoak table\n\n  red, blue  \n", encoding="utf-8")
    assert read_queries(tmp_path / "queries.txt", None) == ["oak table", "red, blue"]


@pytest.mark.parametrize(("name", "separator"), [("queries.csv", ","), ("queries.tsv", "\t")])
def test_a_table_holds_queries_in_the_named_column(tmp_path: Path, name: str, separator: str) -> None:
    (tmp_path / name).write_text(f"id{separator}query\n1{separator}oak table\n2{separator}\n3\n4{separator}lamp\n")
    assert read_queries(tmp_path / name, "query") == ["oak table", "lamp"]
    assert read_queries(tmp_path / name, None) == ["oak table", "lamp"]
    with pytest.raises(ValueError, match=f"{name}, line 1: no column 'q'; it has id, query"):
        read_queries(tmp_path / name, "q")


@pytest.mark.parametrize(("content", "reason"), [(b"\n \n", "holds no query"), (b"caf\xe9\n", "can't be read")])
def test_a_file_without_usable_queries_is_refused_with_the_reason(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "queries.txt").write_bytes(content)
    with pytest.raises(ValueError, match=reason):
        read_queries(tmp_path / "queries.txt", None)
