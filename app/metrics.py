"""Every metric of the service, declared once.

Workers write them to files in shared memory named by their fixed index, not by process id, so a worker that is
restarted counts on where its forerunner stopped and the files do not multiply; the operations port adds them up.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from app.lean_metrics import LeanCounter, LeanHistogram, write_shared
from app.stages import Stages

if TYPE_CHECKING:  # the supervisor reads metrics too, and needs neither queue nor numpy for it
    from app.batching.entry import Dispatch
    from app.batching.replica import FinishedRow
    from app.classifier import Prediction

PREFIX = "query_intent_"
# Fine from 0.5 to 20 ms, with an edge at exactly the objective of 10 ms.
SECONDS = (
    0.0001, 0.00025, 0.0005, 0.00075, 0.001, 0.0015, 0.002, 0.0025, 0.003, 0.004, 0.005, 0.006, 0.007, 0.008, 0.009,
    0.01, 0.012, 0.015, 0.02, 0.03, 0.05, 0.1, 0.25, 1.0, 10.0,
)  # fmt: skip
RATIOS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
# Of the garbage collector: a full one is meant to stay under 5 ms, and what start-up left behind takes 100 and more.
PAUSES = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
GENERATIONS = 3
SINGLE_ROUTE = "/v1/intent"  # the one for which the objective is meant
QUERY_ROUTES = (SINGLE_ROUTE, "/v1/intents")
NO_SOURCE = "none"  # of a reply without an answer to a query
FALLBACK = "fallback"
REASONS = {413: "too_large", 429: "overloaded", 503: "not_ready", 504: "deadline"}


def share_by_slot(slot: int, directory: Path) -> None:
    """Let this process write its metrics to the files of ``slot``. Call it before ``Metrics`` is made."""
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(directory)
    write_shared(slot)


class Metrics:
    """The metrics of one worker. ``slo_s`` is the objective that ``requests_within_slo_total`` counts against."""

    def __init__(self, registry: CollectorRegistry, *, worker: int, slo_s: float) -> None:
        def counter(name: str, text: str, *labels: str) -> Counter:
            return LeanCounter(PREFIX + name, text, labels, registry=registry)

        def gauge(name: str, text: str, *labels: str, mode: Any = "livesum") -> Gauge:
            return Gauge(PREFIX + name, text, labels, registry=registry, multiprocess_mode=mode)

        def histogram(name: str, text: str, *labels: str, buckets: tuple[float, ...] = SECONDS) -> Histogram:
            return LeanHistogram(PREFIX + name, text, labels, registry=registry, buckets=buckets)

        self._worker = worker
        self._slo_s = slo_s
        self.requests = counter("requests", "Requests answered", "route", "status", "source")
        self.stage_seconds = histogram("stage_seconds", "Seconds of a request spent in a stage", "stage")
        self.within_slo = counter("requests_within_slo", "Single queries answered 200 within the latency objective")
        self.queue_items = gauge("queue_items", "Queries that wait for a row")
        self.queue_tokens = gauge("queue_tokens", "Tokens that wait for a row")
        self.queue_oldest = gauge("queue_oldest_seconds", "Age of the query that waits longest", mode="livemax")
        self.inflight = gauge("inflight", "Requests being answered")
        self.rows = counter("rows", "Rows that ran", "replica", "bucket")
        self.dispatched = counter("dispatched", "Rows by why they left with what they hold", "reason")
        self.row_fill = histogram("row_fill_ratio", "Share of a row's tokens that are a query's", buckets=RATIOS)
        self.row_seconds = histogram("row_seconds", "Seconds that a row took on its replica", "bucket")
        self.busy = counter("replica_busy_seconds", "Seconds that a replica spent on rows", "replica")
        self.replicas = gauge("replicas", "Replicas that should run in the whole service", mode="max")
        self.replicas_ready = gauge("replicas_ready", "Replicas that take rows")
        self.core_faults = counter(
            "core_faults", "Failures of a replica's core, by the runtime's name", "replica", "fault"
        )
        self.rejected = counter("rejected", "Requests not answered for lack of time or room", "reason")
        self.cancelled = counter("cancelled", "Queries given up by their client", "stage")
        lookups = counter("cache", "Texts that were looked up in the cache", "result")
        self._lookups = {is_hit: lookups.labels(result) for is_hit, result in ((True, "hit"), (False, "miss"))}
        self.coalesced = counter("coalesced", "Queries answered by the computation of an identical one in flight")
        self.predictions = counter("predictions", "Queries by their most confident intent", "intent")
        self.confidence = histogram("confidence", "Confidence of the most confident intent", buckets=RATIOS)
        self.unknown_tokens = histogram("unknown_token_ratio", "Share of a query's tokens not known", buckets=RATIOS)
        self.truncated = counter("truncated", "Queries cut to the model's length")
        self.unknown_fields = counter("unknown_fields", "Fields of requests that this version does not know")
        pauses = histogram("gc_pause_seconds", "Seconds of a garbage collection", "generation", buckets=PAUSES)
        self._pauses = [pauses.labels(str(generation)) for generation in range(GENERATIONS)]
        self.info = gauge("info", "What runs", "version", "model", "target", mode="livemostrecent")
        self._request_counters: dict[tuple[str, int, str], Counter] = {}
        self._prediction_counters: dict[str, Counter] = {}
        self._dispatched: dict[Dispatch, Counter] = {}
        self._row_children: dict[tuple[int, int], tuple[Counter, Histogram, Counter]] = {}
        self._stages = {stage: self.stage_seconds.labels(stage) for stage in Stages._fields}

    def observe_request(self, *, route: str, status: int, source: str, stages: Stages) -> None:
        key = route, status, source
        child = self._request_counters.get(key)
        if child is None:
            child = self._request_counters[key] = self.requests.labels(route, str(status), source)
        child.inc()
        if status == 200 and source != NO_SOURCE:  # health checks would hide what queries take
            is_models = source != FALLBACK  # whose reply says how long the model was waited for
            for stage, seconds in zip(Stages._fields, stages, strict=True):
                # A query that needed no model says nothing of the model's stages.
                if stage == "total" or (seconds and is_models):
                    self._stages[stage].observe(seconds)
            if route == SINGLE_ROUTE and stages.total <= self._slo_s:
                self.within_slo.inc()
        elif route in QUERY_ROUTES and (reason := REASONS.get(status)) is not None:  # no readiness probe is rejected
            self.rejected.labels(reason).inc()

    def observe_prediction(self, intent: str, confidence: float, prediction: Prediction) -> None:
        child = self._prediction_counters.get(intent)
        if child is None:
            child = self._prediction_counters[intent] = self.predictions.labels(intent)
        child.inc()
        if prediction.source != "model":  # what follows watches the model
            return
        self.confidence.observe(confidence)
        self.unknown_tokens.observe(prediction.unknown_tokens / prediction.tokens)
        if prediction.truncated:
            self.truncated.inc()

    def count_lookup(self, is_hit: bool) -> None:
        self._lookups[is_hit].inc()

    def count_unknown_fields(self, fields: Mapping[str, Any] | None) -> None:
        if fields:
            self.unknown_fields.inc(len(fields))

    def observe_row(self, finished: FinishedRow) -> None:
        row = finished.row
        key = finished.replica, row.bucket
        children = self._row_children.get(key)
        if children is None:
            replica, bucket = f"{self._worker}.{finished.replica}", str(row.bucket)
            children = self.rows.labels(replica, bucket), self.row_seconds.labels(bucket), self.busy.labels(replica)
            self._row_children[key] = children
        rows, row_seconds, busy = children
        seconds = finished.finished_at - finished.started_at
        dispatched = self._dispatched.get(row.dispatch)
        if dispatched is None:
            dispatched = self._dispatched[row.dispatch] = self.dispatched.labels(row.dispatch.value)
        dispatched.inc()
        rows.inc()
        row_seconds.observe(seconds)
        busy.inc(seconds)
        self.row_fill.observe(sum(entry.tokens for entry in row.entries) / row.bucket)

    def count_fault(self, replica: int, fault: str) -> None:
        self.core_faults.labels(f"{self._worker}.{replica}", fault).inc()

    def observe_pause(self, generation: int, seconds: float) -> None:
        """In whichever thread set the collection off: its values are nobody else's, and collections never overlap."""
        self._pauses[generation].observe(seconds)

    def count_cancelled(self, stage: str, count: int) -> None:
        self.cancelled.labels(stage).inc(count)


def render_shared(directory: Path, collectors: Iterable[Collector] = ()) -> bytes:
    """All workers' metrics added up, and what ``collectors`` tell of the machine, in the Prometheus text format."""
    registry = CollectorRegistry()
    MultiProcessCollector(registry, path=str(directory))  # type: ignore[no-untyped-call]
    for collector in collectors:
        registry.register(collector)
    return prometheus_client.generate_latest(registry)


def forget_live(slot: int, directory: Path) -> None:
    """Drop the gauges of a worker that died; its counters stay, so that no total ever falls."""
    for path in directory.glob(f"gauge_live*_{slot}.db"):
        path.unlink(missing_ok=True)
