"""One worker's metrics, and how those of several are added up."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from prometheus_client import CollectorRegistry

from app.batching.queue import Dispatch, Entry, Row
from app.batching.replica import FinishedRow
from app.metrics import SECONDS, Metrics, forget_live, render_shared
from app.stages import Stages


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def metrics(registry: CollectorRegistry) -> Metrics:
    return Metrics(registry, worker=3, slo_s=0.010)


def value(registry: CollectorRegistry, name: str, **labels: str) -> float:
    return registry.get_sample_value(f"query_intent_{name}", labels) or 0.0


def test_stages_have_an_edge_at_exactly_the_objective_and_are_fine_around_it() -> None:
    assert 0.01 in SECONDS
    fine = [edge for edge in SECONDS if 0.0005 <= edge <= 0.02]
    assert len(fine) >= 15
    assert max(later / earlier for earlier, later in itertools.pairwise(fine)) <= 1.5


@pytest.mark.parametrize(("total_s", "within"), [(0.0, 1), (0.00999, 1), (0.010, 1), (0.010001, 0), (1.0, 0)])
def test_a_single_query_is_within_the_objective_up_to_it(
    registry: CollectorRegistry, metrics: Metrics, total_s: float, within: int
) -> None:
    metrics.observe_request(route="/v1/intent", status=200, source="model", stages=Stages(total=total_s))

    assert value(registry, "requests_within_slo_total") == within
    assert value(registry, "stage_seconds_count", stage="total") == 1


@pytest.mark.parametrize(
    ("route", "status", "source"),
    [("/v1/intents", 200, "model"), ("/healthz", 200, "none"), ("/v1/intent", 504, "none"), ("/docs", 200, "none")],
)
def test_nothing_else_counts_for_the_objective(
    registry: CollectorRegistry, metrics: Metrics, route: str, status: int, source: str
) -> None:
    metrics.observe_request(route=route, status=status, source=source, stages=Stages())

    assert value(registry, "requests_within_slo_total") == 0
    assert value(registry, "requests_total", route=route, status=str(status), source=source) == 1


@pytest.mark.parametrize("route", ["/healthz", "/readyz", "/v1/model", "other"])
def test_health_checks_are_no_part_of_the_latency(registry: CollectorRegistry, metrics: Metrics, route: str) -> None:
    metrics.observe_request(route=route, status=200, source="none", stages=Stages(total=0.001))

    assert value(registry, "stage_seconds_count", stage="total") == 0


@pytest.mark.parametrize(
    ("status", "reason"), [(413, "too_large"), (429, "overloaded"), (503, "not_ready"), (504, "deadline")]
)
def test_what_was_refused_for_lack_of_time_or_room_is_counted_by_reason(
    registry: CollectorRegistry, metrics: Metrics, status: int, reason: str
) -> None:
    metrics.observe_request(route="/v1/intent", status=status, source="none", stages=Stages())

    assert value(registry, "rejected_total", reason=reason) == 1


@pytest.mark.parametrize("status", [400, 404, 422, 499, 500])
def test_other_failures_are_not_among_the_refused(registry: CollectorRegistry, metrics: Metrics, status: int) -> None:
    metrics.observe_request(route="/v1/intent", status=status, source="none", stages=Stages())

    assert b"query_intent_rejected_total{" not in b"".join(
        sample.name.encode() + b"{" for family in registry.collect() for sample in family.samples if sample.value
    )


@pytest.mark.parametrize("source", ["cache", "override"])
def test_a_query_that_needed_no_model_says_nothing_of_the_models_stages(
    registry: CollectorRegistry, metrics: Metrics, source: str
) -> None:
    metrics.observe_request(route="/v1/intent", status=200, source=source, stages=Stages(total=0.001))
    metrics.observe_request(route="/v1/intent", status=200, source="model", stages=Stages(0.001, 0.002, 0.003, 0.006))

    counts = {stage: value(registry, "stage_seconds_count", stage=stage) for stage in Stages._fields}
    assert counts == {"tokenize": 1, "queue": 1, "inference": 1, "total": 2}


def test_a_fallbacks_answer_says_nothing_of_the_models_stages(registry: CollectorRegistry, metrics: Metrics) -> None:
    """Its reply says what it took; under overload nearly all would, and the model's own times would be lost in them."""
    metrics.observe_request(route="/v1/intent", status=200, source="fallback", stages=Stages(0.0, 0.02, 0.0001, 0.021))

    counts = {stage: value(registry, "stage_seconds_count", stage=stage) for stage in Stages._fields}
    assert counts == {"tokenize": 0, "queue": 0, "inference": 0, "total": 1}


def test_lookups_are_counted_by_result_and_there_from_the_start(registry: CollectorRegistry, metrics: Metrics) -> None:
    for is_hit in (True, False, True):
        metrics.count_lookup(is_hit)

    assert value(registry, "cache_total", result="hit") == 2
    assert value(registry, "cache_total", result="miss") == 1
    assert registry.get_sample_value("query_intent_coalesced_total") == 0


def test_unknown_fields_are_counted_one_by_one(registry: CollectorRegistry, metrics: Metrics) -> None:
    for fields in ({"a": 1, "b": None}, {}, None, {"c": {"d": 1}}):
        metrics.count_unknown_fields(fields)

    assert value(registry, "unknown_fields_total") == 3


def test_a_row_counts_for_the_reason_for_which_it_left(registry: CollectorRegistry, metrics: Metrics) -> None:
    """F14."""
    entry = Entry(np.ones(8, np.int64), enqueued_at=0.0, deadline=1.0)
    for dispatch in (Dispatch.FULL, Dispatch.IDLE, Dispatch.FULL):
        metrics.observe_row(FinishedRow(Row(8, [entry], dispatch), [None], 0.0, 0.001, replica=0))

    assert value(registry, "dispatched_total", reason="full") == 2
    assert value(registry, "dispatched_total", reason="idle") == 1


def test_pauses_of_the_collector_have_an_edge_at_what_a_full_one_may_take(
    registry: CollectorRegistry, metrics: Metrics
) -> None:
    """F22."""
    metrics.observe_pause(2, 0.005)
    metrics.observe_pause(2, 0.0051)

    assert value(registry, "gc_pause_seconds_bucket", generation="2", le="0.005") == 1
    assert value(registry, "gc_pause_seconds_count", generation="2") == 2
    assert value(registry, "gc_pause_seconds_count", generation="0") == 0


def test_without_workers_there_is_nothing_to_render(tmp_path: Path) -> None:
    assert render_shared(tmp_path) == b""


def test_of_a_dead_worker_only_the_gauges_of_the_living_are_forgotten(tmp_path: Path) -> None:
    """F23: its counters stay, so that no total falls; files are named by index and can't multiply."""
    names = ["counter_1.db", "histogram_1.db", "gauge_livesum_1.db", "gauge_livemax_1.db", "gauge_mostrecent_1.db"]
    others = ["gauge_livesum_0.db", "gauge_livesum_11.db", "gauge_livemax_2.db"]
    for name in [*names, *others]:
        (tmp_path / name).touch()

    forget_live(1, tmp_path)
    forget_live(1, tmp_path)  # nothing is left to forget

    kept = ["counter_1.db", "histogram_1.db", "gauge_mostrecent_1.db", *others]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(kept)
