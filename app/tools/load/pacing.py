"""Sending on time: an alarm that rings when it should, and a loop that nothing the server does can slow down.

Open loop means that the schedule is made before the run and is kept whatever comes back, as real users don't wait for
one another. A closed loop hides queueing and flatters the tail.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import time
from array import array
from collections.abc import Callable, Iterator

from app.tools.arrivals import NS_PER_S

# One turn of the loop sends at most this many overdue requests, so that replies are read in between.
MAX_SENDS_PER_TURN = 16

_CLOCK_MONOTONIC = 1
_TFD_TIMER_ABSTIME = 1


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
