"""More than can be computed: clients that try again when they are told to, and deadlines that can't be met."""

from __future__ import annotations

import asyncio
import itertools
import time
from array import array
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import orjson
import uvloop

from app.tools.arrivals import NS_PER_S, Span, schedule
from app.tools.load.pacing import OpenLoop
from benchmarks.field_cases.case import FieldCase, Finding, address, percentile, unless
from benchmarks.raw_http import post
from benchmarks.service import Service
from benchmarks.soak.clients import Clients
from benchmarks.soak.mix import Asked

# Rows of 20 ms leave the generator most of the machine: two replicas of them compute some hundreds of queries a second.
SETTINGS = {"null_ms": 20, "workers": 1, "replicas": 2}
QUERY = "red running shoes"  # five tokens with both marks, so that nine fit the longest row of 48
CAPACITY = 2 * 9 / 0.020

PHASE_S = 20.0
PEAK, STORM, AFTER = 1.0, 3.0, 0.5  # of the capacity, one after the other
MAX_TRIES = 4
GOODPUT_SHARE = 0.9
TIMEOUT_MS = 100
RECOVERY_S = 1.0

DEADLINE_MS = 8
SLACK_MS = 4.0


@dataclass(slots=True)
class Storm:
    """Clients that send again after the ``retry_after_ms`` of a 429."""

    answered_at: list[float] = field(default_factory=list)
    latencies_ms: list[float] = field(default_factory=list)
    refused_at: list[float] = field(default_factory=list)
    given_up: int = 0
    tries: dict[int, int] = field(default_factory=dict)  # by the request's identity, of those that try again
    send: Callable[[Asked], None] = lambda _asked: None

    def on_end(self, asked: Asked, status: int, body: bytes) -> None:
        now = time.monotonic()
        tries = self.tries.pop(id(asked), 1)
        if status == 200:
            self.answered_at.append(now)
            self.latencies_ms.append((time.monotonic_ns() - asked.intended_ns) / 1e6)
            return
        self.refused_at.append(now)
        if status != 429 or tries == MAX_TRIES:
            self.given_up += 1
            return
        self.tries[id(asked)] = tries + 1
        wait_s = orjson.loads(body)["retry_after_ms"] / 1e3
        asyncio.get_running_loop().call_later(wait_s, self._send_again, asked)

    def _send_again(self, asked: Asked) -> None:
        asked.intended_ns = time.monotonic_ns()
        self.send(asked)


async def send_at(rate: float, seconds: float, send: Callable[[Asked], None], data: bytes, *, seed: int) -> None:
    """Poisson arrivals of ``data``, on time."""
    start_ns = time.monotonic_ns()
    intended_ns = array("q", (schedule("poisson", [Span(seconds, rate)], seed=seed) + start_ns).tobytes())
    await OpenLoop(intended_ns, lambda n: send(Asked("patient", data, (QUERY,), intended_ns=intended_ns[n]))).run()
    await asyncio.sleep(max(0.0, start_ns / NS_PER_S + seconds - time.monotonic()))


def retries(scale: float) -> Finding:
    seconds = PHASE_S * scale
    storm = Storm()
    data = post("/v1/intent", {"query": QUERY, "timeout_ms": TIMEOUT_MS})

    async def run(service: Service) -> list[float]:
        clients = Clients(address(service), size=512, on_end=storm.on_end)
        storm.send = clients.send
        edges = [time.monotonic()]
        for number, share in enumerate((PEAK, STORM, AFTER)):
            await send_at(share * CAPACITY, seconds, clients.send, data, seed=number)
            edges.append(time.monotonic())
        await clients.drain(10)
        return edges

    with Service(target="null", **SETTINGS) as service:
        edges = uvloop.run(run(service))
    peak, flood, after = (
        sum(start <= moment < end for moment in storm.answered_at) / (end - start)
        for start, end in itertools.pairwise(edges)
    )
    recovery_s = max([moment - edges[2] for moment in storm.refused_at if moment >= edges[2]], default=0.0)
    tail_ms = percentile(storm.latencies_ms, 99)
    figures = {
        "goodput_per_s": {"peak": round(peak, 1), "storm": round(flood, 1), "after": round(after, 1)},
        "answered_p99_ms": tail_ms,
        "refusals": len(storm.refused_at),
        "given_up": storm.given_up,
        "recovery_s": round(recovery_s, 2),
    }
    wrong = unless(flood >= GOODPUT_SHARE * peak, f"goodput falls from {peak:.0f}/s to {flood:.0f}/s in the storm")
    wrong += unless(tail_ms <= TIMEOUT_MS, f"the P99 of the answered is {tail_ms:.0f} ms")
    return Finding(figures, wrong + unless(recovery_s < RECOVERY_S, f"refusals go on for {recovery_s:.1f} s after it"))


def deadlines(scale: float) -> Finding:
    statuses: Counter[int] = Counter()
    answered_ms: list[float] = []
    told_ms: list[float] = []
    data = post("/v1/intent", {"query": QUERY, "timeout_ms": DEADLINE_MS})

    def on_end(asked: Asked, status: int, _body: bytes) -> None:
        statuses[status] += 1
        (answered_ms if status == 200 else told_ms).append((time.monotonic_ns() - asked.intended_ns) / 1e6)

    async def run(service: Service) -> None:
        clients = Clients(address(service), size=256, on_end=on_end)
        await send_at(100, PHASE_S * scale, clients.send, data, seed=0)
        await clients.drain(10)

    with Service(target="null", **SETTINGS) as service:
        uvloop.run(run(service))
    told_p99_ms = percentile(told_ms, 99) if told_ms else None
    figures = {"statuses": {str(status): count for status, count in statuses.items()}, "told_p99_ms": told_p99_ms}
    late = sum(each > DEADLINE_MS + SLACK_MS for each in answered_ms)
    wrong = unless(not late, f"{late} answers came after the deadline")
    wrong += unless(set(statuses) <= {200, 429, 504}, f"statuses are {sorted(statuses)}")
    is_told = told_p99_ms is None or told_p99_ms <= DEADLINE_MS + SLACK_MS
    return Finding(figures, wrong + unless(is_told, f"the others were told after {told_p99_ms} ms (P99)"))


CASES = [
    FieldCase(
        "F29",
        "retries",
        f"at 3 x capacity, with retries, goodput stays >= {GOODPUT_SHARE:.0%} of its peak",
        1.1,
        retries,
    ),
    FieldCase(
        "F30", "deadlines", f"rows of 20 ms, a deadline of {DEADLINE_MS}: nobody is answered after it", 0.4, deadlines
    ),
]
