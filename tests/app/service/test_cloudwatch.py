"""Metrics on standard output: right across a worker's death, told to the end, and none unless asked for."""

from __future__ import annotations

import os
import signal
from typing import Any

from tests.app.service.conftest import Start
from tests.app.service.running import RunningService, is_alive, wait_until
from tests.emf_schema import parse


def told(service: RunningService) -> list[dict[str, Any]]:
    return [parse(line) for line in service.output.read_bytes().splitlines(keepends=True)]


def test_counts_are_right_across_a_workers_death(start: Start) -> None:
    """F23: 40 queries before and 40 after; a test that runs over a full minute sees two lines."""
    service = start(workers=2, replicas=1, emf="QueryIntent", emf_dimensions="Service=search,Stage=test").wait_ready()
    for _ in range(40):
        assert service.classify("red shoes").status == 200
    wait_until(lambda: service.total("requests_total", route="/v1/intent") == 40)  # a reply leaves before it is counted
    victim = service.worker_pids[0]
    os.kill(victim, signal.SIGKILL)
    wait_until(lambda: not is_alive(victim) and len(service.worker_pids) == 3)
    wait_until(lambda: service.total("replicas_ready") == 2)
    for _ in range(40):
        assert service.classify("red shoes").status == 200
    service.process.send_signal(signal.SIGTERM)
    assert service.wait_exit() == 0

    documents = told(service)
    assert sum(document["requests"] for document in documents) == 80
    assert sum(document["answered"] for document in documents) == 80
    assert sum(document["latency"]["Count"] for document in documents if "latency" in document) == 80
    assert [document["start_to_ready"] > 0 for document in documents if "start_to_ready" in document] == [True]
    assert documents[-1]["replicas"] == 2
    assert (documents[-1]["Service"], documents[-1]["Stage"]) == ("search", "test")
    assert documents[-1]["_aws"]["CloudWatchMetrics"][0]["Namespace"] == "QueryIntent"


def test_nothing_is_written_unless_asked_for(start: Start) -> None:
    service = start().wait_ready()
    service.classify("red shoes")
    service.process.send_signal(signal.SIGTERM)
    assert service.wait_exit() == 0
    assert service.output.read_bytes() == b""


def test_a_malformed_dimension_stops_the_start_with_its_name(start: Start) -> None:
    service = start(emf="QueryIntent", emf_dimensions="Service=search,Stadt=Köln")
    assert service.wait_exit() == 1
    assert service.plain_lines == [
        "query-intent: QUERY_INTENT_EMF_DIMENSIONS=Service=search,Stadt=Köln: "
        "the value of the dimension 'Stadt' may hold printable ASCII characters only"
    ]
