"""What a good request gets: the answer's shape, headers, and routes that describe the service."""

from __future__ import annotations

import re
from typing import Any

import pytest

from benchmarks.raw_http import post, request
from tests.app.service.bundles import GROUPS, HELP_THRESHOLD, LABELS
from tests.app.service.running import RunningService
from tests.app.service.test_bad_inputs import stages

STATUSES = ("200", "400", "408", "413", "415", "422", "429", "500", "503", "504")


def test_an_answer_has_the_documented_members(service: RunningService) -> None:
    answer = service.classify("Where is my ORDER?").json()

    assert list(answer) == [
        *("query", "intent", "confidence", "group", "intents", "groups", "source", "model", "truncated")
    ]
    assert answer["query"] == "Where is my ORDER?"
    assert answer["source"] == "model"
    assert answer["model"] == "tiny@1"
    assert answer["truncated"] is False


def test_intents_and_groups_are_ranked_and_add_up_to_one(service: RunningService) -> None:
    answer = service.classify("where is my order").json()
    intents = [scored["confidence"] for scored in answer["intents"]]
    groups = [scored["confidence"] for scored in answer["groups"]]

    assert (len(intents), len(groups)) == (LABELS, GROUPS)
    assert intents == sorted(intents, reverse=True)
    assert groups == sorted(groups, reverse=True)
    assert sum(intents) == pytest.approx(1, abs=1e-5)
    assert sum(groups) == pytest.approx(1, abs=1e-5)
    assert answer["intent"] == answer["intents"][0]["intent"]
    assert answer["confidence"] == intents[0]
    assert answer["group"] == answer["groups"][0]["group"]


def test_a_groups_confidence_is_the_sum_over_its_labels(service: RunningService) -> None:
    model, answer = service.get("/v1/model").json(), service.classify("where is my order").json()
    of_intent = {scored["intent"]: scored["confidence"] for scored in answer["intents"]}

    for scored in answer["groups"]:
        members = [label["name"] for label in model["labels"] if label["group"] == scored["group"]]
        assert scored["confidence"] == pytest.approx(sum(of_intent[name] for name in members), abs=1e-5)


def test_capitals_spaces_and_question_marks_change_nothing(service: RunningService) -> None:
    plain = service.classify("where is my order").json()
    shouted = service.classify("  WHERE is   my order??").json()

    assert shouted | {"query": plain["query"]} == plain


def test_a_list_is_answered_in_its_order(service: RunningService) -> None:
    """F32."""
    queries = [f"shoes {number}" for number in range(100)]

    results = service.classify_list(queries, timeout_ms=10_000).json()["results"]

    assert [result["query"] for result in results] == queries


def test_abstaining_takes_intent_and_group_and_leaves_the_ranking(service: RunningService) -> None:
    threshold = service.get("/v1/model").json()["abstain_threshold"]
    queries = ["a", "red shoes", "usb", "where is my order", "return", "how do i cancel", "dress", "99", "is it"]
    answers = {query: service.classify(query, abstain=True).json() for query in queries}
    under_threshold = {query for query, answer in answers.items() if answer["confidence"] < threshold}
    under_its_group_s = {
        query
        for query, answer in answers.items()
        if answer["groups"][0]["group"] == "help" and answer["groups"][0]["confidence"] < HELP_THRESHOLD
    }
    unsure = under_threshold | under_its_group_s

    assert under_threshold
    assert under_its_group_s - under_threshold
    assert len(unsure) < len(queries)
    for query, answer in answers.items():
        usual = service.classify(query, abstain=False).json()
        assert usual["intent"]
        if query in unsure:
            assert answer == usual | {"intent": None, "group": None}
        else:
            assert answer == usual


def test_a_query_of_too_many_tokens_is_cut_and_says_so(service: RunningService) -> None:
    before = service.total("truncated_total")

    assert service.classify("a " * 30).json()["truncated"] is False  # 32 tokens with [CLS] and [SEP]
    assert service.classify("a " * 31).json()["truncated"] is True
    assert service.total("truncated_total") == before + 1


@pytest.mark.parametrize(("path", "body"), [("/v1/intent", {"query": "a"}), ("/v1/intents", {"queries": ["a", "b"]})])
def test_every_answer_says_where_the_time_went(service: RunningService, path: str, body: dict[str, Any]) -> None:
    spent = stages(service.send(post(path, body)).headers["server-timing"])

    assert list(spent) == ["tokenize", "queue", "inference", "total"]
    assert spent["tokenize"] > 0
    assert spent["inference"] > 0
    assert spent["total"] >= spent["tokenize"] + spent["queue"] + spent["inference"] - 0.01  # milliseconds, rounded


def test_the_time_of_the_model_is_the_inference(slow_service: RunningService) -> None:
    spent = stages(slow_service.classify("red shoes").headers["server-timing"])

    assert spent["inference"] >= 100


@pytest.mark.parametrize("own", ["a", "0af7651916cd43dd8448eb211c80319c", "trace:1/span=2@shop+x-y.z", "x" * 128])
@pytest.mark.parametrize("path", ["/v1/intent", "/v1/nothing"])
def test_a_callers_own_request_id_is_kept(service: RunningService, own: str, path: str) -> None:
    for document in ({"query": "red shoes"}, {"query": ""}):
        reply = service.send(post(path, document, f"X-Request-Id: {own}"))
        assert reply.headers["x-request-id"] == own
        assert reply.json().get("request_id", own) == own


@pytest.mark.parametrize("unfit", ["", " ", "a b", 'x"y', "x" * 129, "caf\xe9", "a,b", "<script>"])
def test_an_unfit_request_id_is_replaced(service: RunningService, unfit: str) -> None:
    reply = service.classify("red shoes", f"X-Request-Id: {unfit}")

    assert re.fullmatch(r"[0-9a-f]{12}-[0-9a-f]+", reply.headers["x-request-id"])


def test_request_ids_are_all_different(service: RunningService) -> None:
    ids = {service.get(path).headers["x-request-id"] for path in ["/healthz", "/v1/model", "/nothing"] * 5}

    assert len(ids) == 15


def test_the_schema_documents_both_routes_as_they_are(service: RunningService) -> None:
    schema = service.get("/openapi.json").json()
    schemas = schema["components"]["schemas"]

    for path, body, answer in [
        ("/v1/intent", "IntentRequest", "IntentReply"),
        ("/v1/intents", "IntentListRequest", "IntentListReply"),
    ]:
        operation = schema["paths"][path]["post"]
        assert operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].endswith(f"/{body}")
        assert tuple(operation["responses"]) == STATUSES
        content = operation["responses"]["200"]["content"]["application/json"]
        assert content["schema"]["$ref"].endswith(f"/{answer}")
        for status in STATUSES[1:]:
            (kind,) = operation["responses"][status]["content"]
            assert kind == "application/problem+json", status
            assert operation["responses"][status]["content"][kind]["schema"]["$ref"].endswith("/Problem")
    top_k = schemas["IntentRequest"]["properties"]["top_k"]["anyOf"][0]
    assert (top_k["minimum"], top_k["maximum"]) == (1, 100)
    assert schemas["IntentRequest"]["required"] == ["query"]
    assert set(schemas["IntentReply"]["properties"]) == set(service.classify("a").json())
    assert {"/v1/model", "/healthz", "/readyz"} <= set(schema["paths"])


def test_the_documentation_is_a_page(service: RunningService) -> None:
    reply = service.get("/docs")

    assert (reply.status, reply.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert b"/openapi.json" in reply.body


def test_the_model_route_shows_what_really_runs(strict_service: RunningService) -> None:
    """F14."""
    model = strict_service.get("/v1/model").json()

    assert model["model"] == "tiny@1"
    assert model["target"]["target"] == "null"
    assert model["target"]["buckets"] == [16, 32]
    assert set(model["rows_ms"]) == {"16", "32"}
    assert len(model["labels"]) == LABELS
    assert len(model["groups"]) == GROUPS
    settings = model["settings"]
    assert (settings["max_queries"], settings["queue_tokens"], settings["keep_alive_s"]) == (8, 64, 1)
    assert (settings["replicas"], settings["workers"]) == (2, 1)
    assert settings["timeout_ms"] == 100  # a default is shown as well


def test_health_is_answered_on_both_ports(service: RunningService) -> None:
    for reply in (service.get("/healthz"), service.ops("/healthz")):
        assert (reply.status, reply.json()) == (200, {"status": "alive"})
    for reply in (service.get("/readyz"), service.ops("/readyz")):
        assert reply.status == 200
        assert reply.json() == {
            "ready": True,
            "reason": "",
            "replicas_ready": 2,
            "replicas": 2,
            "replicas_out": [],
        }


def test_the_operations_port_has_problems_of_the_same_kind(service: RunningService) -> None:
    reply = service.ops("/v1/intent")

    assert (reply.status, reply.headers["content-type"]) == (404, "application/problem+json")


def test_metrics_are_not_on_the_traffic_port(service: RunningService) -> None:
    assert service.send(request("GET", "/metrics")).status == 404
