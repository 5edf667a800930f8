"""An answer instead of a refusal: what the model can't answer in time is answered by the bundle's fallback, on the same
route and in the same shape.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.raw_http import Connection, post
from tests.app.service.bundles import GROUPS, LABELS, LONG_QUERY, POISON, make_null_bundle
from tests.app.service.conftest import Start
from tests.app.service.running import RunningService, wait_until
from tests.tiny_fallback import KNOWN, add_fallback

# A row takes so long that the eight of the warm-up outlast any test.
LOADING_MS = 2000
SLOW = {"null_ms": 100, "replicas": 1, "timeout_ms": 10_000}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return add_fallback(make_null_bundle(tmp_path_factory.mktemp("bundles") / "fallback", buckets=(32,)))


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory, bundle: Path) -> Iterator[RunningService]:
    """One replica that takes 100 ms for a row, and a fallback."""
    with RunningService(tmp_path_factory.mktemp("slow"), bundle=bundle, **SLOW) as running:
        yield running.wait_ready()


@pytest.fixture
def backlog(slow: RunningService) -> Iterator[RunningService]:
    """The service with 12 rows to run, all of which the model answers in the end."""
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(slow.connect()) for _ in range(12)]
        for client in clients:
            client.send(post("/v1/intent", {"query": LONG_QUERY}))
        slow.wait_until_read()
        yield slow
        assert [_source(client) for client in clients] == ["model"] * len(clients)


def _source(client: Connection) -> str:
    source: str = client.reply().json()["source"]
    return source


@pytest.mark.parametrize(("word", "intent"), KNOWN.items())
def test_a_query_that_would_be_late_is_answered_at_once(backlog: RunningService, word: str, intent: str) -> None:
    reply = backlog.classify(f"The {word}!", timeout_ms=200)
    answer = reply.json()

    assert reply.status == 200
    assert (answer["source"], answer["intent"], answer["query"]) == ("fallback", intent, f"The {word}!")
    assert (len(answer["intents"]), len(answer["groups"]), answer["model"]) == (LABELS, GROUPS, "tiny@1")
    assert "total;dur=" in reply.headers["server-timing"]


def test_it_is_counted_as_an_answer_and_not_as_a_refusal(backlog: RunningService) -> None:
    answered = backlog.total("requests_total", route="/v1/intent", status="200", source="fallback")
    refused = backlog.total("rejected_total")
    predicted = backlog.total("predictions_total", intent="order_tracking")

    assert backlog.classify("parcel", timeout_ms=200).json()["source"] == "fallback"

    wait_until(
        lambda: backlog.total("requests_total", route="/v1/intent", status="200", source="fallback") == answered + 1
    )
    assert backlog.total("rejected_total") == refused
    assert backlog.total("predictions_total", intent="order_tracking") == predicted + 1


def test_a_list_is_refused_all_the_same(backlog: RunningService) -> None:
    reply = backlog.classify_list(["shoes", "film"], timeout_ms=200)

    assert (reply.status, reply.json()["type"]) == (429, "urn:query-intent:problem:overloaded")


def test_a_list_is_not_told_to_wait_for_single_queries_that_have_their_answer(backlog: RunningService) -> None:
    def told_ms() -> int:
        milliseconds: int = backlog.classify_list(["shoes", "film"], timeout_ms=200).json()["retry_after_ms"]
        return milliseconds

    before = told_ms()
    for _ in range(100):
        assert backlog.classify("parcel", timeout_ms=200).json()["source"] == "fallback"
    assert told_ms() < before + 1000  # the turns of a hundred are some 2,000 ms


def test_it_abstains_under_a_threshold_of_its_own(backlog: RunningService) -> None:
    """ "shoes" is as sure as it gets, "shoes film" is torn between two; the bundle's own threshold is 0.5. As sure as
    "shoes" is "parcel" of its intent, but more is asked of help.
    """
    sure, torn, doubted = (
        backlog.classify(query, timeout_ms=200, abstain=True).json() for query in ("shoes", "shoes film", "parcel")
    )

    assert sure["source"] == torn["source"] == doubted["source"] == "fallback"
    assert (sure["intent"], sure["group"]) == ("product_search", "product_search")
    assert (torn["intent"], torn["group"]) == (doubted["intent"], doubted["group"]) == (None, None)
    assert doubted["confidence"] > 0.75
    assert torn["confidence"] > 0.5
    assert len(torn["intents"]) == LABELS


def test_a_query_that_was_let_in_and_would_miss_its_deadline_is_answered_before_it(slow: RunningService) -> None:
    reply = slow.classify("shoes", timeout_ms=20)

    assert (reply.status, reply.json()["source"]) == (200, "fallback")
    assert slow.classify("shoes").json()["source"] == "model"


def test_who_names_no_time_out_waits_for_the_objective_and_not_longer(start: Start, bundle: Path) -> None:
    """One replica, rows of 40 ms, an objective of 100: of those who come at once the fourth would be late."""
    service = start(bundle=bundle, null_ms=40, replicas=1, slo_ms=100, timeout_ms=10_000).wait_ready()
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(service.connect()) for _ in range(8)]
        for client in clients:
            client.send(post("/v1/intent", {"query": LONG_QUERY}))
        patient = stack.enter_context(service.connect())
        patient.send(post("/v1/intent", {"query": LONG_QUERY, "timeout_ms": 5_000}))
        sources = [_source(client) for client in clients]

        assert _source(patient) == "model"
    assert sources[0] == "model"
    assert sources[-1] == "fallback"


def test_a_model_that_is_never_in_time_is_waited_for_and_the_start_says_so(slow: RunningService) -> None:
    (record,) = slow.records_of(
        "the model is too slow for the objective even when idle: the fallback answers at the time-out only"
    )
    assert (record["level"], record["slo_ms"]) == ("WARNING", 10)
    assert slow.classify("shoes").json()["source"] == "model"


def test_it_answers_while_no_replica_is_ready_and_readiness_says_so(start: Start, bundle: Path) -> None:
    service = start(bundle=bundle, null_ms=LOADING_MS, replicas=1)

    reply = service.classify("where is my parcel")

    assert (reply.status, reply.json()["source"], reply.json()["intent"]) == (200, "fallback", "order_tracking")
    assert service.get("/readyz").status == service.ops("/readyz").status == 503
    assert service.classify_list(["shoes"]).status == 503


def test_it_answers_while_the_only_replica_is_loaded_anew(start: Start, bundle: Path) -> None:
    service = start(bundle=bundle, replicas=1).wait_ready()

    def fell_back() -> bool:
        reply = service.classify(POISON)  # on which the model fails until it is not trusted any more
        assert reply.status == 500 or reply.json()["source"] == "fallback"
        return reply.status == 200 and service.get("/readyz").status == 503

    wait_until(fell_back)
    wait_until(lambda: service.classify("shoes").json()["source"] == "model")


def test_switched_off_the_refusals_are_back(start: Start, bundle: Path) -> None:
    loading = start(bundle=bundle, null_ms=LOADING_MS, replicas=1, fallback="off")
    slow = start(bundle=bundle, fallback="off", **SLOW)

    assert loading.classify("shoes").status == 503
    assert slow.wait_ready().classify("shoes", timeout_ms=20).status == 504
    assert slow.get("/v1/model").json()["fallback"] is None


def test_a_bundle_without_one_is_served_and_the_start_says_what_that_means(start: Start, tmp_path: Path) -> None:
    service = start(bundle=make_null_bundle(tmp_path / "bundle")).wait_ready()

    (record,) = service.records_of("the bundle has no fallback: a query that the model can't answer in time is refused")
    assert (record["level"], record["make_it_with"]) == ("WARNING", "query-intent compile --target fallback")
    assert service.get("/v1/model").json()["fallback"] is None


def test_what_is_served_tells_of_it(slow: RunningService) -> None:
    assert slow.get("/v1/model").json()["fallback"]["abstain_threshold"] == 0.75


def test_priors_correct_it_too(start: Start, bundle: Path, tmp_path: Path) -> None:
    shares = {label["name"]: 1 for label in json.loads((bundle / "bundle.json").read_text())["labels"]}
    (tmp_path / "priors.json").write_text(json.dumps(shares | {"contact": 1000}))
    service = start(bundle=bundle, null_ms=LOADING_MS, replicas=1, priors=tmp_path / "priors.json")

    answer = service.classify("hello").json()
    assert (answer["source"], answer["intent"]) == ("fallback", "contact")
