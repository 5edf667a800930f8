"""What CloudWatch is told once a minute, computed from two scrapes of ``/metrics``; the format is ``app/emf.py``.

deploy/README.md lists each metric with unit and statistic. All of them can be added up, averaged or ranked over tasks
as they are: counts, and distributions with their counts. Percentiles can't, so none is sent.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

from prometheus_client.parser import text_string_to_metric_families

from app.emf import Distribution, Metric, write_line
from app.metrics import FALLBACK, PREFIX, QUERY_ROUTES, SINGLE_ROUTE

logger = logging.getLogger(__name__)

INTERVAL_S = 60
PERCENTILES = (50, 90, 99, 99.9)
REFUSED = ("429", "503", "504")
# Of the memories of a Neuron device, what could not be corrected.
UNCORRECTED = ("mem_ecc_uncorrected", "sram_ecc_uncorrected")


class Scrape:
    """The service's metrics at one moment, from the Prometheus text format."""

    def __init__(self, exposition: bytes) -> None:
        self._samples: dict[str, list[tuple[dict[str, str], float]]] = {}
        for family in text_string_to_metric_families(exposition.decode()):
            for sample in family.samples:
                name = sample.name.removeprefix(PREFIX)
                self._samples.setdefault(name, []).append((sample.labels, sample.value))

    def __contains__(self, name: str) -> bool:
        return name in self._samples

    def by(self, label: str, name: str, **labels: str) -> dict[str, float]:
        """Sums for each value of ``label``, over the samples that have ``labels``."""
        sums: dict[str, float] = {}
        for found, value in self._samples.get(name, []):
            if labels.items() <= found.items():
                sums[found.get(label, "")] = sums.get(found.get(label, ""), 0.0) + value
        return sums

    def sum(self, name: str, **labels: str) -> float:
        return sum(value for found, value in self._samples.get(name, []) if labels.items() <= found.items())


class Minute:
    """What happened between two scrapes that lie ``seconds`` apart."""

    def __init__(self, before: Scrape, now: Scrape, seconds: float) -> None:
        self._before, self._now, self._seconds = before, now, seconds
        self.latency = self._times("total")

    def metrics(self) -> Iterator[Metric]:
        yield from self._requests()
        yield from self._load()
        yield from self._start()
        for name, times in (
            ("latency", self.latency),
            ("queue_time", self._times("queue")),
            ("inference_time", self._times("inference")),
        ):
            if times is not None:
                yield Metric(name, "Milliseconds", times)
        lookups = self._raised_by("result", "cache_total")
        yield from _shares({"cache_hit_ratio": lookups.get("hit", 0.0)}, of=sum(lookups.values()))
        predictions = self._raised_by("intent", "predictions_total")
        shares = {f"share_{intent}": count for intent, count in predictions.items()}
        yield from _shares(shares, of=sum(predictions.values()))
        if "neuron_monitor_up" in self._now:
            errors = self._raised("neuron_errors_total", kind="hardware")
            errors += sum(self._raised("neuron_ecc_events_total", kind=kind) for kind in UNCORRECTED)
            yield Metric("neuron_hardware_errors", "Count", errors)

    def _requests(self) -> Iterator[Metric]:
        """Of single queries, for which the objective is meant, and of lists, apart."""
        singles, lists = (_valid(self._raised_by("status", "requests_total", route=route)) for route in QUERY_ROUTES)
        requests, refused = sum(singles.values()), sum(singles.get(status, 0.0) for status in REFUSED)
        answered = singles.get("200", 0.0)
        counts = {
            "requests": requests,
            "answered": answered,
            "within_slo": self._raised("requests_within_slo_total"),
            "rejected": refused,
            "errors": requests - answered - refused,
            "fallback": self._raised("requests_total", route=SINGLE_ROUTE, source=FALLBACK),
            "lists": sum(lists.values()),
            "lists_answered": lists.get("200", 0.0),
        }
        yield from (Metric(name, "Count", count) for name, count in counts.items())
        yield Metric("request_rate", "Count/Second", requests / self._seconds)

    def _load(self) -> Iterator[Metric]:
        now = self._now
        replicas = now.sum("replicas")
        yield Metric("replicas", "Count", replicas)
        yield Metric("replicas_ready", "Count", now.sum("replicas_ready"))
        yield Metric("queue_age", "Milliseconds", now.sum("queue_oldest_seconds") * 1000)
        if replicas:  # else none has said yet how many there are
            # Little's law: requests in flight, on average, are their rate times the time that each is in flight. Busy
            # replicas are no measure, since an idle one takes whatever waits: all are, long before rows are full.
            in_flight = self._raised("stage_seconds_sum", stage="total") / self._seconds
            yield Metric("inflight_per_core", "Count", in_flight / replicas)

    def _start(self) -> Iterator[Metric]:
        """In the minute in which the service became ready, and in no other."""
        for name in ("start_to_ready", "boot_to_ready"):
            if f"{name}_seconds" in self._now and f"{name}_seconds" not in self._before:
                yield Metric(name, "Seconds", self._now.sum(f"{name}_seconds"))

    def _times(self, stage: str) -> Distribution | None:
        """Milliseconds in a stage, each as its bucket's upper edge, so that no percentile is better than it was."""
        cumulative = self._raised_by("le", "stage_seconds_bucket", stage=stage)
        edges = sorted(cumulative, key=float)
        values: list[float] = []
        counts: list[float] = []
        low = seen = below = 0.0
        for edge in edges:
            count, seen = cumulative[edge] - seen, cumulative[edge]
            # Past the last edge there is no upper one; it says "this or more".
            upper = below if edge == "+Inf" else float(edge) * 1000
            if count > 0:
                low = low if values else below
                values.append(upper)
                counts.append(count)
            below = upper
        if not values:
            return None
        total = self._raised("stage_seconds_sum", stage=stage) * 1000
        return Distribution(values, counts, low=low, high=values[-1], total=total)

    def _raised(self, name: str, **labels: str) -> float:
        return self._now.sum(name, **labels) - self._before.sum(name, **labels)

    def _raised_by(self, label: str, name: str, **labels: str) -> dict[str, float]:
        before, now = (scrape.by(label, name, **labels) for scrape in (self._before, self._now))
        return {value: count - before.get(value, 0.0) for value, count in now.items()}


def _valid(by_status: Mapping[str, float]) -> dict[str, float]:
    """Without what the client got wrong, or left before the answer: all of 4xx but 429."""
    return {status: count for status, count in by_status.items() if status == "429" or not status.startswith("4")}


def _shares(parts: Mapping[str, float], *, of: float) -> Iterator[Metric]:
    """Percentages that may be averaged over minutes and tasks: a hundred for each that is, a zero for each other."""
    for name, part in parts.items() if of else ():
        pairs = [(value, count) for value, count in ((0.0, of - part), (100.0, part)) if count > 0]
        values, counts = zip(*pairs, strict=True)
        yield Metric(name, "Percent", Distribution(values, counts, low=values[0], high=values[-1], total=100 * part))


class Reporter:
    """Writes a line each minute of the clock, and a last one for what is left of it when it is stopped.

    ``scrape`` gives the Prometheus text and ``write`` takes a line; both may block and run in a thread.
    """

    def __init__(
        self,
        scrape: Callable[[], bytes],
        write: Callable[[bytes], object],
        *,
        namespace: str,
        dimensions: Mapping[str, str],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._scrape, self._write, self._clock = scrape, write, clock
        self._namespace, self._dimensions = namespace, dimensions
        self._before, self._since = Scrape(b""), clock()
        self._stopped = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        self._stopped.set()
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        while not self._stopped.is_set():
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), seconds_to_next_minute(self._clock()))
            await self._report()

    async def _report(self) -> None:
        try:
            await asyncio.to_thread(self.report)
        except Exception:  # of the log's reader; queries are answered all the same
            logger.exception("metrics could not be written")

    def report(self) -> None:
        """Write what happened since the last time."""
        now, scrape = self._clock(), Scrape(self._scrape())
        minute = Minute(self._before, scrape, max(now - self._since, 0.001))
        latency = minute.latency
        properties = {} if latency is None else {"latency_ms": {f"p{p:g}": latency.percentile(p) for p in PERCENTILES}}
        middle = (self._since + now) / 2  # in the minute that it tells of, however late the timer was
        line = write_line(
            list(minute.metrics()),
            namespace=self._namespace,
            dimensions=self._dimensions,
            at_s=middle,
            properties=properties,
        )
        self._before, self._since = scrape, now
        self._write(line)


def seconds_to_next_minute(now: float) -> float:
    """One that is about to begin is the one after it: timers may be early."""
    left = INTERVAL_S - now % INTERVAL_S
    return left if left > 1 else left + INTERVAL_S
