"""Open-loop arrivals: what is asked, when each request is meant to leave, and an alarm that rings on time.

Open loop means that the schedule is made before the run and nothing the server does can move it, as real users don't
wait for one another. A closed loop, or a schedule of even gaps, hides queueing and flatters the tail.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import time
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from app.tools.query_files import read_file

NS_PER_S = 1_000_000_000
# One turn of the loop sends at most this many overdue requests, so that replies are read in between.
MAX_SENDS_PER_TURN = 16

LATE_NS = 1_000_000
VOID_LATE_SHARE = 0.001

_CLOCK_MONOTONIC = 1
_TFD_TIMER_ABSTIME = 1

OWN_QUERIES = (
    *(
        "waterproof hiking boots size 43",
        "oak coffee table",
        "usb c charger 65w",
        "kids rain jacket",
        "blue velvet sofa",
    ),
    *("noise cancelling headphones", "running shoes women", "cast iron pan 28 cm", "desk lamp", "gift for a gardener"),
    *("film with the talking raccoon", "jazz playlist for dinner", "audiobook for long drives", "season two episode 4"),
    *("where is my parcel", "my order has not moved for three days", "change the delivery address", "cancel my order"),
    *("how do i send this back", "refund still missing", "can i pay by invoice", "card was declined", "reset password"),
    *("delete my account", "phone number of customer service", "talk to a person", "weather tomorrow", "hello"),
)


def read_queries(path: Path, column: str | None) -> list[str]:
    """The queries of a txt, csv, tsv or jsonl file, in their order; blank ones are left out. Raises ``ValueError``."""
    if queries := [text for row in read_file(path, column=column) if (text := row.text.strip())]:
        return queries
    raise ValueError(f"{path} holds no query")


def _constant_gaps(_rng: np.random.Generator, rate: float, count: int) -> np.ndarray:
    return np.full(count, 1 / rate)


def _poisson_gaps(rng: np.random.Generator, rate: float, count: int) -> np.ndarray:
    return rng.exponential(1 / rate, count)


GAPS: dict[str, Callable[[np.random.Generator, float, int], np.ndarray]] = {
    "poisson": _poisson_gaps,
    "constant": _constant_gaps,
}


def schedule(arrivals: str, *, rate: float, duration_s: float, seed: int) -> np.ndarray:
    """Offsets from the start in ns, int64, ascending and below ``duration_s``, for ``rate`` requests a second."""
    rng = np.random.default_rng(seed)
    expected = rate * duration_s
    offsets = np.empty(0)
    while not offsets.size or offsets[-1] < duration_s:
        # Ten standard deviations of a Poisson count more than expected: a second round is next to impossible.
        gaps = GAPS[arrivals](rng, rate, int(expected + 10 * expected**0.5) + 2)
        offsets = np.concatenate([offsets, (offsets[-1] if offsets.size else 0.0) + np.cumsum(gaps)])
    nanoseconds: np.ndarray = (offsets[offsets < duration_s] * NS_PER_S).astype(np.int64)
    return nanoseconds


class _Itimerspec(ctypes.Structure):
    _fields_ = (
        ("interval_s", ctypes.c_long),
        ("interval_ns", ctypes.c_long),
        ("value_s", ctypes.c_long),
        ("value_ns", ctypes.c_long),
    )


class Alarm:
    """Wakes the running loop at a time of ``time.monotonic_ns`` to some tens of microseconds, without ever spinning.

    A timerfd that the loop watches like a socket (``os.timerfd_create`` from Python 3.13 on). The ways, measured at
    2,000 Poisson wake-ups a second on two cores, by CPU per wake-up and median delay:

    - ``loop.call_later``: 125-136 µs, since it rounds to whole milliseconds and spins through anything shorter;
    - a thread in ``clock_nanosleep`` that writes to an eventfd: 32-44 µs, 84-107 µs late;
    - this: 29-31 µs, 27 µs late, where merely sleeping and waking costs 24-32 µs.
    """

    def __init__(self, ring: Callable[[], None]) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._settime = libc.timerfd_settime
        self._settime.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
        self._fd: int = libc.timerfd_create(_CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create failed")
        self._time = _Itimerspec()
        self._time_reference = ctypes.byref(self._time)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._fd, ring)

    def set(self, at_ns: int) -> None:
        """Ring at ``at_ns``, at once when that is past. Setting also clears an earlier ring: no read is needed."""
        self._time.value_s, self._time.value_ns = divmod(at_ns, NS_PER_S)
        self._settime(self._fd, _TFD_TIMER_ABSTIME, self._time_reference, None)

    def close(self) -> None:
        self._loop.remove_reader(self._fd)
        os.close(self._fd)


class OpenLoop:
    """Calls ``send(number)`` for each of ``intended_ns`` in turn, at that time or as soon after as it can."""

    def __init__(self, intended_ns: array[int], send: Callable[[int], None]) -> None:
        self.sent = 0
        # How late each send was, in ns: the generator's own fault, since a busy connection does not delay this.
        self.lag_ns = array("q", bytes(8 * len(intended_ns)))
        self._intended_ns = intended_ns
        self._send = send
        self._finished = asyncio.get_running_loop().create_future()
        self._alarm = Alarm(self._send_due)

    async def run(self) -> None:
        try:
            self._send_due()
            await self._finished
        finally:
            self._alarm.close()

    def _send_due(self) -> None:
        try:
            self._send_due_or_raise()
        except Exception as error:  # would otherwise vanish in the loop's handler and leave run() waiting
            if not self._finished.done():
                self._finished.set_exception(error)

    def _send_due_or_raise(self) -> None:
        intended_ns, number = self._intended_ns, self.sent
        end = min(number + MAX_SENDS_PER_TURN, len(intended_ns))
        while number < end and (lag := time.monotonic_ns() - intended_ns[number]) >= 0:
            self.lag_ns[number] = lag
            self._send(number)
            number += 1
        self.sent = number
        if number < len(intended_ns):
            self._alarm.set(intended_ns[number])
        elif not self._finished.done():
            self._finished.set_result(None)


def lag_report(lag_ns: np.ndarray) -> dict[str, Any]:
    """How late the generator itself was; ``void`` when too often, since then the schedule was not the one asked for."""
    late_share = float((lag_ns > LATE_NS).mean())
    p99_ms, max_ms = (np.percentile(lag_ns, [99, 100]) / 1e6).round(3).tolist()
    return {
        "late_share": round(late_share, 6),
        "p99_ms": p99_ms,
        "max_ms": max_ms,
        "void": late_share > VOID_LATE_SHARE,
    }


@contextlib.contextmanager
def realtime_priority() -> Iterator[bool]:
    """The calling thread ahead of all ordinary ones while inside, where the system permits it (yields whether it did).

    On a machine shared with the server the scheduler now and then lets a due sender wait for 1-4 ms, which would be
    counted as the server's latency: 0.02-0.2 % of the sends at 2,000/s; with SCHED_FIFO none was later than 0.4 ms. A
    better nice value changes nothing. Safe because a sender that never spins leaves the core after some microseconds.
    """
    policy, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(os.sched_get_priority_min(os.SCHED_FIFO)))
    except PermissionError:
        yield False
        return
    try:
        yield True
    finally:
        os.sched_setscheduler(0, policy, parameters)
