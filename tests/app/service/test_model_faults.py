"""A model that fails: only the query to blame gets an error, and its text is in no log."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.app.service.bundles import POISON
from tests.app.service.running import RunningService, wait_until


@pytest.fixture(scope="module")
def talkative(tmp_path_factory: pytest.TempPathFactory, null_bundle: Path) -> Iterator[RunningService]:
    with RunningService(tmp_path_factory.mktemp("talkative"), bundle=null_bundle, log_level="debug") as running:
        yield running.wait_ready()


FAILED = "urn:query-intent:problem:inference-failed"


def test_a_query_on_which_the_model_fails_is_500_without_internals(service: RunningService) -> None:
    reply = service.classify(f"usb {POISON}", "X-Request-Id: the-poisonous-one")
    problem = reply.json()

    assert (reply.status, problem["type"]) == (500, FAILED)
    assert set(problem) == {"type", "title", "status", "detail", "request_id"}
    assert not re.search(r"Error|Traceback|\.py|nan|logits", reply.body.decode(), re.IGNORECASE)
    assert service.classify("red shoes").status == 200


def test_its_neighbours_in_a_list_are_answered_and_it_is_a_problem_in_its_place(service: RunningService) -> None:
    """F9."""
    queries = ["red shoes", "where is my order", f"usb {POISON}", "return", "how do i cancel"]

    reply = service.classify_list(queries, timeout_ms=10_000)
    results = reply.json()["results"]

    assert reply.status == 200
    assert (results[2]["type"], results[2]["status"]) == (FAILED, 500)
    for query, result in zip(queries, results, strict=True):
        if result is not results[2]:
            alone = service.classify(query).json()
            assert (result["query"], result["intent"]) == (query, alone["intent"])


def test_query_text_is_in_no_log_even_when_the_model_fails(talkative: RunningService) -> None:
    """At the most talkative level, and with every way in which a query can fail."""
    running = talkative
    secret = "zebrastripes"

    assert running.classify(f"{secret} {POISON}").status == 500
    assert running.classify_list([f"{secret} {POISON}", secret]).status == 200
    assert running.classify(secret, top_k=0).status == 422
    assert running.classify_list([secret, ""]).status == 422
    assert running.classify(secret, **{secret: secret}).status == 200
    assert running.get(f"/v1/{secret}").status == 404
    assert running.send(f"POST /v1/intent {secret}\r\n\r\n".encode()).status == 400
    wait_until(lambda: [record for record in running.records if record["level"] == "ERROR"])
    assert secret not in str(running.metrics())
    assert secret not in running.text


def test_a_model_that_keeps_failing_is_loaded_anew_while_the_other_replica_serves(talkative: RunningService) -> None:
    """F7."""
    for _ in range(6):
        if says(talkative, "loading it anew"):
            break
        assert talkative.classify(POISON).status == 500

    assert wait_until(lambda: says(talkative, "loading it anew"))
    assert talkative.classify("red shoes").status == 200
    assert talkative.ops("/readyz").status == 200
    wait_until(lambda: says(talkative, "is back"))
    wait_until(lambda: talkative.total("replicas_ready") == 2)


def says(service: RunningService, what: str) -> bool:
    return any(what in record["message"] for record in service.records)
