"""Every metric under its documented name, after traffic of every kind."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from benchmarks.raw_http import post
from tests.app.service.bundles import LABELS, LONG_QUERY
from tests.app.service.running import RunningService, parse_metrics, wait_until

# Dashboards and alarms are made of these names and labels.
NAMES: dict[str, set[str]] = {
    "requests_total": {"route", "status", "source"},
    "stage_seconds_bucket": {"stage", "le"},
    "stage_seconds_count": {"stage"},
    "stage_seconds_sum": {"stage"},
    "requests_within_slo_total": set(),
    "start_to_ready_seconds": set(),
    "queue_items": set(),
    "queue_tokens": set(),
    "queue_oldest_seconds": set(),
    "inflight": set(),
    "rows_total": {"replica", "bucket"},
    "dispatched_total": {"reason"},
    "row_fill_ratio_bucket": {"le"},
    "row_seconds_bucket": {"bucket", "le"},
    "replica_busy_seconds_total": {"replica"},
    "replicas": set(),
    "replicas_ready": set(),
    "rejected_total": {"reason"},
    "cancelled_total": {"stage"},
    "cache_total": {"result"},
    "coalesced_total": set(),
    "predictions_total": {"intent"},
    "confidence_bucket": {"le"},
    "unknown_token_ratio_bucket": {"le"},
    "truncated_total": set(),
    "unknown_fields_total": set(),
    "gc_pause_seconds_bucket": {"generation", "le"},
    "info": {"version", "model", "target"},
}
# Where the container has a quota, and on a machine that was just booted.
CONDITIONAL_NAMES = {
    "cpu_periods_total",
    "cpu_throttled_periods_total",
    "cpu_throttled_seconds_total",
    "boot_to_ready_seconds",
}
README = Path(__file__).parents[3] / "README.md"


@pytest.fixture(scope="module")
def scraped(slow_service: RunningService) -> bytes:
    slow_service.classify("red shoes", color="red")
    slow_service.classify("a " * 100)
    slow_service.classify("red shoes", timeout_ms=20)
    before = slow_service.total("cancelled_total")
    client = slow_service.connect()
    client.send(post("/v1/intents", {"queries": [LONG_QUERY] * 20}))
    slow_service.wait_until_read()
    client.close()
    wait_until(lambda: slow_service.total("cancelled_total") > before)
    wait_until(lambda: slow_service.total("inflight") == 0)
    return slow_service.ops("/metrics").body


@pytest.mark.parametrize("name", NAMES)
def test_a_metric_has_its_documented_name_and_labels(scraped: bytes, name: str) -> None:
    labels = [
        set(sample.labels)
        for family in text_string_to_metric_families(scraped.decode())
        for sample in family.samples
        if sample.name == f"query_intent_{name}"
    ]

    assert labels
    assert all(each == NAMES[name] for each in labels)


def test_there_are_no_metrics_but_the_documented_ones(scraped: bytes) -> None:
    documented = {name.removesuffix("_bucket") for name in NAMES} | CONDITIONAL_NAMES
    families = {family.name for family in text_string_to_metric_families(scraped.decode())}

    assert families <= {f"query_intent_{name.removesuffix('_total')}" for name in documented}


@pytest.mark.parametrize("name", sorted({name.removesuffix("_bucket") for name in NAMES} | CONDITIONAL_NAMES))
def test_the_readme_lists_it(name: str) -> None:
    if name.startswith("stage_seconds"):
        name = "stage_seconds"  # a histogram is listed once
    assert re.search(rf"`{name}[`{{]", README.read_text(encoding="utf-8"))


def test_every_metric_is_explained(scraped: bytes) -> None:
    assert all(family.documentation for family in text_string_to_metric_families(scraped.decode()))


@pytest.mark.parametrize("stage", ["tokenize", "queue", "inference", "total"])
def test_each_stage_has_an_edge_at_ten_milliseconds(scraped: bytes, stage: str) -> None:
    assert f'stage_seconds_bucket{{le="0.01",stage="{stage}"}}' in parse_metrics(scraped)


def test_labels_are_bounded_whatever_is_asked_for(service: RunningService) -> None:
    for number in range(20):
        service.get(f"/v1/{number}")
        service.get(f"/{number}?query={number}")

    routes = {name for name in service.metrics() if name.startswith("requests_total")}
    assert len(routes) < 30
    assert any('route="other"' in name for name in routes)


def test_predictions_are_counted_by_intent(service: RunningService) -> None:
    intent = service.classify("red shoes").json()["intent"]
    before = service.total("predictions_total", intent=intent)

    service.classify("red shoes")
    service.classify_list(["red shoes"] * 3, timeout_ms=10_000)

    assert wait_until(lambda: service.total("predictions_total", intent=intent) == before + 4)
    assert len([name for name in service.metrics() if name.startswith("predictions_total")]) <= LABELS


def test_health_checks_do_not_count_as_latency(service: RunningService) -> None:
    service.wait_until_read()  # and has counted what others asked
    before = service.total("stage_seconds_count", stage="total")

    for path in ("/healthz", "/readyz", "/v1/model"):
        service.get(path)

    assert service.total("stage_seconds_count", stage="total") == before


def test_the_replicas_that_run_are_shown(service: RunningService) -> None:
    assert service.total("replicas") == 2
    assert wait_until(lambda: service.total("replicas_ready") == 2)
    assert service.total("info", model="tiny@1", target="null") == 1


def test_a_row_is_counted_for_its_replica_and_bucket(service: RunningService) -> None:
    service.wait_until_read()
    rows, seconds = service.total("rows_total"), service.total("replica_busy_seconds_total")

    service.classify("red shoes")

    assert wait_until(lambda: service.total("rows_total") == rows + 1)
    service.wait_until_read()
    assert service.total("replica_busy_seconds_total") > seconds
    assert service.total("row_seconds_count") == service.total("rows_total")
    assert service.total("row_fill_ratio_count") == service.total("rows_total")
