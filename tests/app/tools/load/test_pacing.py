"""Requests leave when they are meant to, at next to no cost."""

from __future__ import annotations

import asyncio
import os
import time
from array import array

import pytest

from app.tools.arrivals import Span, schedule
from app.tools.load.pacing import OpenLoop, realtime_priority


def test_each_request_is_sent_once_in_order_and_never_early() -> None:
    offsets_ns = schedule("poisson", [Span(0.2, 2000)], seed=5)
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


def test_a_send_that_takes_long_makes_the_following_late_and_they_are_noted_so() -> None:
    def send(number: int) -> None:
        end = time.monotonic_ns() + (5_000_000 if number == 0 else 0)
        while time.monotonic_ns() < end:
            pass

    async def run() -> array[int]:
        start_ns = time.monotonic_ns() + 1_000_000
        open_loop = OpenLoop(array("q", [start_ns, start_ns + 2_000_000]), send)
        await open_loop.run()
        return open_loop.lag_ns

    assert asyncio.run(run())[1] >= 3_000_000


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
