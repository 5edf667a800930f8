"""One run: the plan is sent on time, and what became of it is recorded."""

from __future__ import annotations

import asyncio
import gc
import resource
import time
from array import array
from collections.abc import Sequence

import numpy as np
import uvloop

from app.tools.arrivals import NS_PER_S
from app.tools.load.client import ConnectionPool
from app.tools.load.outcomes import Outcomes, Recording
from app.tools.load.pacing import OpenLoop, realtime_priority
from app.tools.load.plan import Plan
from app.tools.load.progress import Progress
from app.tools.load.target import Target

LEAD_S = 0.01  # from the last preparation to the start of the schedule


def run(plan: Plan, requests: Sequence[bytes], target: Target, *, connections: int, timeout_s: float) -> Recording:
    """Send ``requests[number]`` at the plan's offset of that number. Returns when each of them has ended.

    Raises OSError or TimeoutError when the connections can't be made.
    """
    gc.freeze()
    gc.disable()  # nothing here makes cycles, and a collection would be a pause in the schedule
    try:
        return uvloop.run(_run(plan, requests, target, connections, timeout_s))
    finally:
        gc.enable()
        gc.unfreeze()


async def _run(plan: Plan, requests: Sequence[bytes], target: Target, connections: int, timeout_s: float) -> Recording:
    intended_ns = array("q", bytes(plan.offsets_ns.nbytes))
    outcomes = Outcomes(intended_ns, first_recorded=plan.first_recorded)
    pool = ConnectionPool(target, requests, outcomes, size=connections, timeout_s=timeout_s)
    loop = asyncio.get_running_loop()
    try:
        await pool.open()
        open_loop = OpenLoop(intended_ns, pool.send)
        start_ns = time.monotonic_ns() + int(LEAD_S * NS_PER_S)
        np.frombuffer(intended_ns, np.int64)[:] = plan.offsets_ns + start_ns
        cpu_at_start_s = [_cpu_s()]
        loop.call_later(LEAD_S + plan.warmup_s, lambda: cpu_at_start_s.append(_cpu_s()))
        with Progress(lambda: open_loop.sent, outcomes, plan), realtime_priority() as is_realtime:
            await open_loop.run()
            await pool.drain()
        cpu_s = _cpu_s() - cpu_at_start_s[-1]
    finally:
        await pool.aclose()
    return Recording.of(
        outcomes,
        open_loop.lag_ns,
        steps=plan.steps,
        start_ns=start_ns + round(plan.warmup_s * NS_PER_S),
        cpu_s=cpu_s,
        is_realtime=is_realtime,
    )


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
