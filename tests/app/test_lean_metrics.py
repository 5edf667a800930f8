"""Metric values that a worker raises in shared memory: the library's, read by the library."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import prometheus_client
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from app.lean_metrics import LeanCounter, LeanHistogram
from app.metrics import render_shared

# In a process of its own: from there on every value of the process is in shared memory.
WORKER = """
import os, sys
from pathlib import Path
from prometheus_client import CollectorRegistry
from app.metrics import Metrics, share_by_slot
from app.stages import Stages

for _ in range(int(sys.argv[4]) - 1):  # a fork is a process as any other, and needs no second import
    if (child := os.fork()) == 0:
        break
    os.waitpid(child, 0)
share_by_slot(int(sys.argv[1]), Path(sys.argv[2]))
metrics = Metrics(CollectorRegistry(), worker=0, slo_s=0.010)
for route in range(int(sys.argv[3])):  # a name of 2 kB each, so that the file grows and is mapped anew
    metrics.observe_request(route=f"{route:02000}", status=404, source="none", stages=Stages())
for _ in range(10):
    metrics.observe_request(route="/v1/intent", status=200, source="model", stages=Stages(0.0001, 0.001, 0.002, 0.004))
"""


def work(index: int, folder: Path, *, routes: int = 0, restarts: int = 1) -> None:
    subprocess.run([sys.executable, "-c", WORKER, str(index), str(folder), str(routes), str(restarts)], check=True)


def samples(folder: Path) -> dict[tuple[str, ...], float]:
    families = text_string_to_metric_families(render_shared(folder).decode())
    return {
        (sample.name.removeprefix("query_intent_"), *dict(sorted(sample.labels.items())).values()): sample.value
        for family in families
        for sample in family.samples
    }


def test_workers_are_added_up_and_a_restarted_one_counts_on(tmp_path: Path) -> None:
    """F23: a worker's index names its files, so that its replacement continues them and no total falls."""
    for index in (0, 1, 0):
        work(index, tmp_path)

    found = samples(tmp_path)
    assert found["requests_total", "/v1/intent", "model", "200"] == 30
    assert found["requests_within_slo_total",] == 30
    assert found["stage_seconds_bucket", "0.003", "total"] == 0
    assert found["stage_seconds_bucket", "0.004", "total"] == 30
    assert found["stage_seconds_sum", "total"] == pytest.approx(30 * 0.004)


def test_fifty_restarts_leave_the_files_of_one_worker(tmp_path: Path) -> None:
    """F23: a scrape reads as much after them as before."""
    work(0, tmp_path)
    before = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    for _ in range(5):
        work(0, tmp_path, restarts=10)

    assert {path.name: path.stat().st_size for path in tmp_path.iterdir()} == before
    assert samples(tmp_path)["requests_total", "/v1/intent", "model", "200"] == 10 + 50 * 10


def test_a_file_that_grows_keeps_what_is_raised_afterwards(tmp_path: Path) -> None:
    work(0, tmp_path, routes=800)

    assert (tmp_path / "counter_0.db").stat().st_size > 1 << 20
    found = samples(tmp_path)
    assert found["requests_total", "/v1/intent", "model", "200"] == 10
    assert found["requests_within_slo_total",] == 10  # made before the file grew


@given(st.lists(st.sampled_from([0.0, 0.1, 0.5, 1.0]) | st.floats(-1, 3), max_size=30))
def test_a_histogram_counts_as_the_librarys_own(amounts: list[float]) -> None:
    registries = []
    for histogram in (LeanHistogram, prometheus_client.Histogram):
        registries.append(CollectorRegistry())
        one = histogram("a", "", ["label"], registry=registries[-1], buckets=(0.1, 0.5, 1.0)).labels("x")
        for amount in amounts:
            one.observe(amount)

    ours, theirs = (
        {
            (sample.name, *sample.labels.values()): sample.value
            for family in registry.collect()
            for sample in family.samples
            if sample.name != "a_created"
        }
        for registry in registries
    )
    assert ours == theirs


def test_a_counter_counts_by_label() -> None:
    registry = CollectorRegistry()
    counter = LeanCounter("a", "", ["label"], registry=registry)
    counter.labels("x").inc()
    counter.labels("x").inc(2.5)

    assert registry.get_sample_value("a_total", {"label": "x"}) == 3.5
