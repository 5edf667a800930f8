"""A real service under a real load, and what keeps one from starting."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.tools.doctor.check import Check, Verdict
from app.tools.doctor.serving import Asked, rate_for, rows_by_replica, serve_and_load

METRICS = """
# TYPE query_intent_rows_total counter
query_intent_rows_total{bucket="8",replica="0.0"} 3.0
query_intent_rows_total{bucket="16",replica="0.0"} 4.0
query_intent_rows_total{bucket="8",replica="0.1"} 5.0
query_intent_rows_created{bucket="8",replica="0.1"} 1.7
"""


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        yield taken.getsockname()[1]


def checks(bundle: Path, *, port: int = 0, slo_ms: float = 1000) -> list[Check]:
    asked = Asked(bundle=bundle, target="null", port=port, seconds=1, slo_ms=slo_ms)
    return list(serve_and_load(asked, 50, os.environ))


def test_the_service_starts_answers_in_time_and_loses_nobody(tiny_bundle: Path) -> None:
    service, load, after = checks(tiny_bundle)
    assert service.verdict is Verdict.OK
    assert service.detail.startswith("http://127.0.0.1:")
    assert not load.is_failed
    assert load.data["load"]["statuses"] == {"200": load.data["load"]["scheduled"]}
    assert after.verdict is Verdict.OK
    assert sum(after.data["rows"].values()) > 0


def test_an_objective_that_nothing_meets_is_missed(tiny_bundle: Path) -> None:
    load = checks(tiny_bundle, slo_ms=0.001)[1]
    assert load.is_failed
    assert "0.00% of all within 0.001 ms" in load.detail


def test_a_port_that_is_taken_is_named(tiny_bundle: Path, taken_port: int) -> None:
    (service,) = checks(tiny_bundle, port=taken_port)
    assert service.is_failed
    assert f"QUERY_INTENT_PORT={taken_port}: can't listen" in service.detail


@pytest.mark.parametrize(("tokens", "rate"), [(0, 20), (90_000, 1000), (1e9, 2000)])
def test_the_rate_is_a_tenth_of_what_the_cores_could_compute(tokens: float, rate: float) -> None:
    assert rate_for(tokens) == rate


def test_rows_are_summed_over_buckets() -> None:
    assert rows_by_replica(METRICS) == {"0.0": 7, "0.1": 5}
