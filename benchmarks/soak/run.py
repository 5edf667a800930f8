"""One soak: the load, the killer and the samples of memory side by side, and the report of all three."""

from __future__ import annotations

import asyncio
import json
import os
import platform
import time
from array import array
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import uvloop

from app.tools.arrivals import NS_PER_S, Span, schedule
from app.tools.load.pacing import OpenLoop
from app.version import VERSION
from benchmarks.service import Service
from benchmarks.soak.chaos import Chaos
from benchmarks.soak.clients import STATUS_LEFT, STATUS_LOST, STATUS_SILENT, UNANSWERED_AFTER_S, Clients
from benchmarks.soak.corpus import Corpus, texts
from benchmarks.soak.judging import FAULTS, Ending, judge
from benchmarks.soak.ledger import MAX_SLOPE_MB_PER_MIN, Ledger, Slice, verdict
from benchmarks.soak.memory import Sample, slope_mb_per_min
from benchmarks.soak.mix import Asked, Mix

SLICE_S = 5.0
CONNECTIONS = 128
SATURATING = 32  # requests in flight while the rate is looked for
SATURATION_S = 10.0
EXPLAINED = ("worker died",)  # errors that a kill leaves in the log


@dataclass(frozen=True, slots=True)
class Plan:
    """What is asked of a soak; ``rate`` is in requests a second, None to find it."""

    target: str
    minutes: float
    rate: float | None
    share: float
    workers: int
    replicas: int
    cache_bytes: int
    texts: int
    list_size: int
    kill_every_s: float
    settle_s: float
    seed: int


def soak(plan: Plan, log: Path, *, show: Callable[[str], None]) -> dict[str, Any]:
    """Run it; the report, whose ``wrong`` is empty where the soak passed."""
    settings = {"target": plan.target, "workers": plan.workers, "replicas": plan.replicas}
    with Service(log, cache_bytes=plan.cache_bytes, fallback="on", **settings) as service:
        parts = urlsplit(service.traffic)
        address = str(parts.hostname), int(parts.port or 80)
        show(f"asking for {plan.texts:,} texts, one after the other")
        corpus = Corpus.ask(address, texts(plan.texts, seed=plan.seed))
        return uvloop.run(_Soak(plan, service, address, corpus, log, show).run())


class _Soak:
    def __init__(
        self,
        plan: Plan,
        service: Service,
        address: tuple[str, int],
        corpus: Corpus,
        log: Path,
        show: Callable[[str], None],
    ) -> None:
        self._plan = plan
        self._service = service
        self._corpus = corpus
        self._log = log
        self._show = show
        self._mix = Mix(corpus, list_size=plan.list_size, seed=plan.seed)
        self._ledger = Ledger()
        self._memory: list[Sample] = []
        self._lag_ns = array("q")
        self._address = address

    async def run(self) -> dict[str, Any]:
        peak = None
        rate = self._plan.rate
        if rate is None:
            self._show(f"looking for the rate, {SATURATION_S:g} s")
            peak = await self._saturate()
            rate = peak * self._plan.share
        self._clients = Clients(self._address, size=CONNECTIONS, on_end=self._record)
        self._chaos = Chaos(
            self._service,
            every_s=self._plan.kill_every_s,
            replicas=self._plan.workers * self._plan.replicas,
            seed=self._plan.seed,
        )
        slices = max(1, round(self._plan.minutes * 60 / SLICE_S))
        self._started = time.monotonic()
        killing = asyncio.create_task(self._chaos.run_task(self._started + slices * SLICE_S - self._plan.settle_s))
        for number in range(slices):
            await asyncio.gather(self._send(number, rate), self._sample_memory())
            self._clients.give_up_silent()
            self._show(self._line(number + 1, slices, self._ledger.close_slice((number + 1) * SLICE_S)))
        await killing
        await self._clients.drain(2 * UNANSWERED_AFTER_S)
        return self._report(rate, peak)

    async def _saturate(self) -> float:
        """Requests a second that the service answers to so many patient callers as it can bear."""
        answered = 0
        until = time.monotonic() + SATURATION_S

        def on_end(asked: Asked, status: int, body: bytes) -> None:
            nonlocal answered
            answered += status == 200
            if time.monotonic() < until:
                clients.send(self._mix.draw_patient())

        clients = Clients(self._address, size=SATURATING, on_end=on_end)
        for _ in range(SATURATING):
            clients.send(self._mix.draw_patient())
        await asyncio.sleep(SATURATION_S)
        rate = answered / SATURATION_S
        await clients.drain(2 * UNANSWERED_AFTER_S)
        return rate

    async def _send(self, number: int, rate: float) -> None:
        """The requests of one slice, on time."""
        offsets = schedule("poisson", [Span(SLICE_S, rate)], seed=self._plan.seed + number)
        start_ns = int((self._started + number * SLICE_S) * NS_PER_S)
        intended_ns = array("q", (offsets + start_ns).tobytes())

        def send(place: int) -> None:
            asked = self._mix.draw()
            asked.intended_ns = intended_ns[place]
            self._ledger.count_sent()
            self._clients.send(asked)

        if intended_ns:
            open_loop = OpenLoop(intended_ns, send)
            await open_loop.run()
            self._lag_ns.extend(open_loop.lag_ns)
        await asyncio.sleep(max(0.0, self._started + (number + 1) * SLICE_S - time.monotonic()))

    def _record(self, asked: Asked, status: int, body: bytes) -> None:
        if status == STATUS_LEFT:
            ending = Ending.LEFT
        elif status == STATUS_SILENT or (status == STATUS_LOST and not self._chaos.explains_loss()):
            ending = Ending.UNANSWERED
        elif status == STATUS_LOST:
            ending = Ending.LOST
        else:
            ending = judge(asked, status, body, self._corpus, is_whole=self._chaos.is_whole)
        self._ledger.record(asked, ending, now_ns=time.monotonic_ns(), reply=body)

    async def _sample_memory(self) -> None:
        """One sample, unless the service has just started or lacks a worker: that has another level."""
        epoch = len(self._chaos.kills)
        try:
            mb = await asyncio.to_thread(self._service.pss_mb)
        except (FileNotFoundError, ProcessLookupError):  # a worker ended just now
            return
        settled_at = max(self._started, self._chaos.whole_since) + self._plan.settle_s
        if self._chaos.is_whole and epoch == len(self._chaos.kills) and time.monotonic() > settled_at:
            self._memory.append(Sample((time.monotonic() - self._started) / 60, round(mb, 3), epoch))

    def _line(self, number: int, slices: int, latest: Slice) -> str:
        ledger = self._ledger
        faults = sum(map(ledger.total, FAULTS))
        p99 = "nothing answered" if latest.p99_ms is None else f"P99 {latest.p99_ms:.1f} ms"
        memory = f"{self._memory[-1].mb:.0f} MB" if self._memory else "settling"
        return (
            f"{number * SLICE_S / 60:.1f} of {slices * SLICE_S / 60:.1f} min, {ledger.sent:,} sent, "
            f"{ledger.total(Ending.RIGHT):,} right, {ledger.total(Ending.REFUSED):,} refused, {faults} faults, {p99}, "
            f"{memory}, {len(self._chaos.kills)} kills"
        )

    def _report(self, rate: float, peak: float | None) -> dict[str, Any]:
        slope = slope_mb_per_min(self._memory)
        errors = list(_unexplained(self._log.read_text(encoding="utf-8", errors="replace").splitlines()))
        late = sum(lag > NS_PER_S // 1000 for lag in self._lag_ns)
        return {
            "version": VERSION,
            "machine": {"cpus": os.cpu_count(), "python": platform.python_version()},
            "plan": asdict(self._plan),
            "peak_per_s": peak and round(peak, 1),
            "rate_per_s": round(rate, 1),
            "texts_left_out": self._corpus.left_out,
            "sent": self._ledger.sent,
            "endings": {ending.value: self._ledger.total(ending) for ending in Ending},
            "endings_by_kind": self._ledger.by_kind(),
            "patient_answered_share": round(self._ledger.answered_share, 5),
            "late_sends_share": round(late / max(1, len(self._lag_ns)), 5),
            "memory_slope_mb_per_min": slope if slope is None else round(slope, 4),
            "memory_slope_limit_mb_per_min": MAX_SLOPE_MB_PER_MIN,
            "kills": self._chaos.kills,
            "errors": errors[:20],
            "examples": self._ledger.examples,
            "wrong": verdict(self._ledger, self._memory, errors),
            "slices": {name: [getattr(each, name) for each in self._ledger.slices] for name in Slice._fields},
            "memory": {name: [getattr(each, name) for each in self._memory] for name in Sample._fields},
        }


def _unexplained(lines: Iterable[str]) -> Iterable[dict[str, Any]]:
    """Records of errors in the log but those that a kill leaves, and whatever isn't a record."""
    for line in lines:
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            yield {"message": line[:300]}
            continue
        if record["level"] in ("ERROR", "CRITICAL") and record["message"] not in EXPLAINED:
            yield record
