"""What CloudWatch is told of a minute: differences between scrapes, which may be added up and ranked over tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from app.classifier import Prediction
from app.cloudwatch import INTERVAL_S, PERCENTILES, Reporter, seconds_to_next_minute
from app.metrics import Metrics
from app.stages import Stages
from app.start_times import StartTimes
from tests.emf_schema import parse

START = 1_700_000_040.0  # a full minute
SINGLE, LIST = "/v1/intent", "/v1/intents"


class Service:
    """A worker's metrics in virtual time, and the documents that are written about them."""

    def __init__(self) -> None:
        self.now = START
        self.registry = CollectorRegistry()
        self.metrics = Metrics(self.registry, worker=0, slo_s=0.010)
        self.metrics.replicas.set(4)
        self.metrics.replicas_ready.set(4)
        self.lines: list[bytes] = []
        self.reporter = Reporter(
            lambda: generate_latest(self.registry),
            self.lines.append,
            namespace="QueryIntent",
            dimensions={"Service": "query-intent"},
            clock=lambda: self.now,
        )

    def answer(self, count: int, *, status: int = 200, source: str = "model", route: str = SINGLE, **ms: float) -> None:
        stages = Stages(**{stage: each / 1000 for stage, each in ms.items()})
        for _ in range(count):
            self.metrics.observe_request(route=route, status=status, source=source, stages=stages)

    def minute(self, seconds: float = INTERVAL_S) -> dict[str, Any]:
        self.now += seconds
        self.reporter.report()
        return parse(self.lines[-1])


@pytest.fixture
def service() -> Service:
    return Service()


def test_single_queries_are_answered_refused_or_failed(service: Service) -> None:
    service.answer(90, total=4)
    service.answer(5, total=12)
    service.answer(3, source="fallback", total=9.5)
    for status in (429, 503, 504, 500):
        service.answer(1, status=status, source="none")
    document = service.minute()
    assert {name: document[name] for name in ("requests", "answered", "within_slo", "rejected", "errors")} == {
        "requests": 102,
        "answered": 98,
        "within_slo": 93,
        "rejected": 3,
        "errors": 1,
    }
    assert document["fallback"] == 3
    assert document["request_rate"] == pytest.approx(102 / 60)


def test_what_the_client_got_wrong_and_health_checks_are_no_requests(service: Service) -> None:
    for status in (400, 408, 413, 415, 422, 499):
        service.answer(1, status=status, source="none")
    service.answer(5, route="/healthz", source="none")
    service.answer(5, route="other", status=404, source="none")
    document = service.minute()
    assert (document["requests"], document["answered"], document["errors"], document["rejected"]) == (0, 0, 0, 0)


def test_lists_are_counted_apart(service: Service) -> None:
    service.answer(4, route=LIST, total=30)
    service.answer(1, route=LIST, status=429, source="none")
    document = service.minute()
    assert (document["lists"], document["lists_answered"]) == (5, 4)
    assert (document["requests"], document["rejected"]) == (0, 0)


def test_each_minute_has_its_own_counts(service: Service) -> None:
    service.answer(10, total=3)
    assert service.minute()["requests"] == 10
    service.answer(4, total=3)
    second = service.minute()
    assert (second["requests"], second["latency"]["Count"]) == (4, 4)
    assert service.minute()["requests"] == 0


def test_latency_is_values_with_counts_and_no_percentile_is_better_than_it_was(service: Service) -> None:
    service.answer(50, total=2.2)
    service.answer(49, total=9.9)
    service.answer(1, total=25_000)
    latency = service.minute()["latency"]
    # Past the last edge, 10 s, there is none.
    assert (latency["Values"], latency["Counts"]) == ([2.5, 10, 10_000], [50, 49, 1])
    assert (latency["Min"], latency["Max"]) == (2, 10_000)


def test_percentiles_are_shown_to_who_reads_the_log_and_are_no_metrics(service: Service) -> None:
    service.answer(900, total=2.2)
    service.answer(90, total=5.5)
    service.answer(9, total=9.5)
    service.answer(1, total=14)
    document = service.minute()
    assert document["latency_ms"] == {"p50": 2.5, "p90": 2.5, "p99": 6, "p99.9": 10}
    assert list(document["latency_ms"]) == [f"p{percent:g}" for percent in PERCENTILES]
    (directive,) = document["_aws"]["CloudWatchMetrics"]
    assert not [metric for metric in directive["Metrics"] if metric["Name"].startswith(("p", "latency_ms"))]


def test_a_stage_of_the_model_has_its_own_times(service: Service) -> None:
    service.answer(10, tokenize=0.1, queue=0.4, inference=2.2, total=3)
    document = service.minute()
    assert document["queue_time"]["Values"] == [0.5]
    assert document["inference_time"]["Values"] == [2.5]


def test_work_in_flight_is_a_core_by_littles_law(service: Service) -> None:
    """6,000 requests of 8 ms in a minute are 0.8 in flight on average, on four cores 0.2 each."""
    service.answer(6000, total=8)
    assert service.minute()["inflight_per_core"] == pytest.approx(0.2)


def test_replicas_and_the_oldest_query_are_as_they_are_now(service: Service) -> None:
    service.metrics.replicas_ready.set(3)
    service.metrics.queue_oldest.set(0.0125)
    document = service.minute()
    assert (document["replicas"], document["replicas_ready"], document["queue_age"]) == (4, 3, 12.5)


def test_the_start_is_told_once_in_the_minute_of_its_end(service: Service) -> None:
    assert "boot_to_ready" not in service.minute()
    times = StartTimes(since_boot=lambda: 190.0)
    times.note_ready(4.5)
    service.registry.register(times)
    document = service.minute()
    assert (document["boot_to_ready"], document["start_to_ready"]) == (190.0, 4.5)
    assert not {"boot_to_ready", "start_to_ready"} & service.minute().keys()


def test_ratios_can_be_averaged_over_tasks_since_they_carry_their_counts(service: Service) -> None:
    for is_hit in [True] * 3 + [False]:
        service.metrics.count_lookup(is_hit)
    ratio = service.minute()["cache_hit_ratio"]
    assert (ratio["Values"], ratio["Counts"], ratio["Sum"] / ratio["Count"]) == ([0, 100], [1, 3], 75)


def test_each_intent_has_its_share_of_the_predictions(service: Service) -> None:
    prediction = Prediction(RuntimeError(), source="override")
    for intent in ["media", "media", "media", "contact"]:
        service.metrics.observe_prediction(intent, 0.9, prediction)
    document = service.minute()
    shares = {name: document[name]["Sum"] / document[name]["Count"] for name in document if name.startswith("share_")}
    assert shares == {"share_media": 75, "share_contact": 25}
    # An intent that nobody asked for in a minute has a share of nought in it.
    service.metrics.observe_prediction("contact", 0.9, prediction)
    assert service.minute()["share_media"]["Sum"] == 0


def test_a_minute_without_queries_has_zeros_and_no_distribution(service: Service) -> None:
    document = service.minute()
    assert (document["requests"], document["request_rate"], document["inflight_per_core"]) == (0, 0, 0)
    assert not {"latency", "queue_time", "cache_hit_ratio", "latency_ms"} & set(document)


def test_before_a_worker_has_said_anything_there_are_no_replicas_to_share_the_work() -> None:
    service = Service()
    service.registry = CollectorRegistry()
    document = service.minute()
    assert (document["replicas"], document["replicas_ready"], document["requests"]) == (0, 0, 0)
    assert not {"inflight_per_core", "neuron_hardware_errors"} & set(document)


def test_errors_of_the_neuron_hardware_are_there_where_it_is_watched(service: Service) -> None:
    registry, prefix = service.registry, "query_intent_neuron_"
    Gauge(f"{prefix}monitor_up", "x", registry=registry).set(1)
    errors = Counter(f"{prefix}errors", "x", ["kind"], registry=registry)
    memory = Counter(f"{prefix}ecc_events", "x", ["device", "kind"], registry=registry)
    assert service.minute()["neuron_hardware_errors"] == 0
    errors.labels("hardware").inc(2)
    errors.labels("numerical").inc(8)
    memory.labels("0", "mem_ecc_uncorrected").inc()
    memory.labels("1", "sram_ecc_uncorrected").inc()
    memory.labels("1", "mem_ecc_corrected").inc(50)
    assert service.minute()["neuron_hardware_errors"] == 4


@pytest.mark.parametrize("late_s", [-0.4, 0.0, 5.0])
def test_a_line_belongs_to_the_minute_that_it_tells_of(service: Service, late_s: float) -> None:
    document = service.minute(INTERVAL_S + late_s)
    assert document["_aws"]["Timestamp"] // 60_000 == START // 60


@pytest.mark.parametrize(
    ("now", "seconds"), [(0, 60), (0.5, 59.5), (30, 30), (58.9, 1.1), (59.0, 61), (59.999, 60.001)]
)
def test_the_next_line_is_due_at_the_full_minute(now: float, seconds: float) -> None:
    assert seconds_to_next_minute(START + now) == pytest.approx(seconds, abs=1e-4)


async def _started_and_stopped(reporter: Reporter, meanwhile: Callable[[], object]) -> None:
    reporter.start()
    await asyncio.sleep(0)
    meanwhile()
    await reporter.stop()


def test_what_is_left_of_a_minute_is_told_at_the_end(service: Service) -> None:
    asyncio.run(_started_and_stopped(service.reporter, lambda: service.answer(3, total=4)))
    (line,) = service.lines
    assert parse(line)["requests"] == 3


def test_one_that_was_never_started_writes_nothing(service: Service) -> None:
    asyncio.run(service.reporter.stop())
    assert service.lines == []


def test_a_log_that_is_gone_ends_nothing_but_the_line(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> bytes:
        raise BrokenPipeError

    service.reporter = Reporter(broken, service.lines.append, namespace="N", dimensions={})
    asyncio.run(_started_and_stopped(service.reporter, lambda: None))
    assert [record.message for record in caplog.records] == ["metrics could not be written"]
