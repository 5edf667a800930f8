"""The cache and the sharing of computations, over real sockets and on replicas of the null model."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.raw_http import Connection, post
from tests.app.service.bundles import LABELS, LONG_QUERY, POISON
from tests.app.service.conftest import Start
from tests.app.service.running import RunningService, wait_until
from tests.app.service.test_bad_inputs import stages

CACHE_BYTES = 1_000_000
NUMBERS = itertools.count()  # a query with the next one has never been asked


@pytest.fixture(scope="module")
def caching(tmp_path_factory: pytest.TempPathFactory, null_bundle: Path) -> Iterator[RunningService]:
    """A model that answers at once."""
    folder = tmp_path_factory.mktemp("caching")
    with RunningService(folder, bundle=null_bundle, cache_bytes=CACHE_BYTES) as running:
        yield running.wait_ready()


@pytest.fixture(scope="module")
def slow_caching(tmp_path_factory: pytest.TempPathFactory, one_bucket_bundle: Path) -> Iterator[RunningService]:
    """One replica that takes 100 ms for a row of 32 tokens, callers that wait for 10 s, and one answer in the cache."""
    folder = tmp_path_factory.mktemp("slow-caching")
    slowness = {"null_ms": 100, "replicas": 1, "timeout_ms": 10_000, "cache_bytes": CACHE_BYTES}
    with RunningService(folder, bundle=one_bucket_bundle, **slowness) as running:
        assert running.wait_ready().classify("known").status == 200
        yield running


def rows(service: RunningService) -> float:
    return service.total("rows_total")


class TestRepeated:
    def test_a_repeated_query_is_answered_from_the_cache_and_as_before(self, caching: RunningService) -> None:
        first, again = caching.classify("red shoes"), caching.classify("  RED shoes?")

        assert first.headers["cache-status"] == "query-intent; fwd=miss"
        assert again.headers["cache-status"] == "query-intent; hit"
        assert again.json() == first.json() | {"query": "  RED shoes?", "source": "cache"}
        spent = stages(again.headers["server-timing"])
        assert spent["tokenize"] == spent["queue"] == spent["inference"] == 0 < spent["total"]

    def test_it_costs_no_row_and_is_counted(self, caching: RunningService) -> None:
        caching.classify("my order")
        wait_until(lambda: rows(caching) == caching.total("row_seconds_count"))
        before = {name: caching.total(name) for name in ("rows_total", "confidence_count", "predictions_total")}
        hits, answered = caching.total("cache_total", result="hit"), caching.total("requests_total", source="cache")
        misses = caching.total("cache_total", result="miss")

        for _ in range(3):
            caching.classify("my order")

        assert caching.total("cache_total", result="hit") == hits + 3
        assert caching.total("cache_total", result="miss") == misses
        # Counted when the reply is out, so a client may be back before.
        wait_until(lambda: caching.total("requests_total", source="cache") == answered + 3)
        assert wait_until(lambda: caching.total("predictions_total") == before["predictions_total"] + 3)
        assert caching.total("confidence_count") == before["confidence_count"]  # it watches the model
        assert rows(caching) == before["rows_total"]

    def test_each_request_still_gets_what_it_asks_for(self, caching: RunningService) -> None:
        queries = ["a", "red shoes", "usb", "where is my order", "return", "how do i cancel", "dress", "99", "is it"]
        usual = {query: caching.classify(query).json() for query in queries}
        model = caching.get("/v1/model").json()
        asked = {**dict.fromkeys(model["groups"], 0.0), **model["group_thresholds"]}
        unsure = {
            query
            for query, answer in usual.items()
            if answer["confidence"] < model["abstain_threshold"]
            or answer["groups"][0]["confidence"] < asked[answer["group"]]
        }
        assert 0 < len(unsure) < len(queries)

        for query, answer in usual.items():
            known = caching.classify(query, top_k=2, abstain=True).json()
            assert known["source"] == "cache"
            assert known["intents"] == answer["intents"][:2]
            assert (known["intent"] is None) is (query in unsure)
            assert len(caching.classify(query).json()["intents"]) == LABELS

    def test_a_query_that_was_cut_still_says_so(self, caching: RunningService) -> None:
        for source in ("model", "cache"):
            answer = caching.classify("a " * 100).json()
            assert (answer["source"], answer["truncated"]) == (source, True)

    def test_a_list_uses_and_fills_it(self, caching: RunningService) -> None:
        single = caching.classify("usb cab").json()
        shared = caching.total("coalesced_total")

        reply = caching.classify_list(["usb cab", "new shoes", "NEW shoes"])
        results = reply.json()["results"]

        assert stages(reply.headers["server-timing"])["tokenize"] > 0
        assert [result["source"] for result in results] == ["cache", "model", "model"]
        assert results[0] == single | {"source": "cache"}
        assert results[1] == results[2] | {"query": "new shoes"}
        assert caching.total("coalesced_total") == shared + 1
        assert caching.classify("new shoes").json()["source"] == "cache"

    def test_what_the_model_failed_on_is_tried_again(self, caching: RunningService) -> None:
        failed = caching.total("rows_total")
        for _ in range(2):
            assert caching.classify(f"usb {POISON}").status == 500
        assert wait_until(lambda: rows(caching) == failed + 2)

    def test_errors_and_overrides_have_no_cache_status(self, start: Start, tmp_path: Path) -> None:
        table = tmp_path / "overrides.tsv"
        table.write_text("query\tintent\ngift cards\tother\n")
        service = start(overrides=table, cache_bytes=CACHE_BYTES).wait_ready()
        for reply in (service.classify("gift cards"), service.classify(""), service.classify_list(["a"])):
            assert "cache-status" not in reply.headers

    def test_priors_are_in_the_answer_that_is_kept(self, start: Start, tmp_path: Path, caching: RunningService) -> None:
        labels = [label["name"] for label in caching.get("/v1/model").json()["labels"]]
        (tmp_path / "priors.json").write_text(json.dumps({label: 1 + place for place, label in enumerate(labels)}))
        service = start(priors=tmp_path / "priors.json", cache_bytes=CACHE_BYTES).wait_ready()
        first, again = service.classify("red shoes").json(), service.classify("red shoes").json()
        assert again == first | {"source": "cache"}
        assert first["intents"] != caching.classify("red shoes").json()["intents"]


class TestOff:
    def test_nothing_is_kept_and_nothing_said(self, service: RunningService) -> None:
        for _ in range(2):
            reply = service.classify("red shoes")
            assert reply.json()["source"] == "model"
            assert "cache-status" not in reply.headers
        assert service.total("cache_total") == 0

    def test_identical_queries_in_flight_are_each_computed(self, slow_service: RunningService) -> None:
        before = slow_service.total("coalesced_total")
        results = slow_service.classify_list(["red shoes"] * 3).json()["results"]
        assert len(results) == 3
        assert slow_service.total("coalesced_total") == before == 0


class TestInFlight:
    @pytest.fixture(autouse=True)
    def backlog(self, slow_caching: RunningService) -> Iterator[None]:
        """Whoever comes now waits for twelve rows of 100 ms."""
        with contextlib.ExitStack() as stack:
            ahead = [stack.enter_context(slow_caching.connect()) for _ in range(12)]
            for client in ahead:
                client.send(post("/v1/intent", {"query": f"{next(NUMBERS)} {LONG_QUERY}"}))
            slow_caching.wait_until_read()
            yield
            assert [client.reply().status for client in ahead] == [200] * len(ahead)

    def clients(self, service: RunningService, query: str, *timeouts_ms: int) -> list[Connection]:
        """They have asked, all the same thing, and have no answer yet."""
        connections = [service.connect() for _ in timeouts_ms]
        for connection, timeout_ms in zip(connections, timeouts_ms, strict=True):
            connection.send(post("/v1/intent", {"query": query, "timeout_ms": timeout_ms}))
        service.wait_until_read()
        return connections

    def test_a_query_that_is_suddenly_everybodys_is_computed_once(self, slow_caching: RunningService) -> None:
        shared, misses = slow_caching.total("coalesced_total"), slow_caching.total("cache_total", result="miss")
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(each) for each in self.clients(slow_caching, "launch day", *[9000] * 8)]
            replies = [client.reply() for client in clients]

        assert {reply.status for reply in replies} == {200}
        assert len({reply.body for reply in replies}) == 1
        assert replies[0].json()["source"] == "model"
        statuses = Counter(reply.headers["cache-status"] for reply in replies)
        assert statuses == {"query-intent; fwd=miss": 1, "query-intent; fwd=miss; collapsed": 7}
        assert slow_caching.total("coalesced_total") == shared + 7
        assert slow_caching.total("cache_total", result="miss") == misses + 8
        for reply in replies:
            spent = stages(reply.headers["server-timing"])
            assert spent["queue"] > 0
            assert spent["total"] >= spent["tokenize"] + spent["queue"] + spent["inference"] - 0.01

    def test_each_gives_up_in_its_own_time(self, slow_caching: RunningService) -> None:
        """Alone the hasty one would be refused; who joins is not, since that adds no work."""
        (patient,) = self.clients(slow_caching, "two patiences", 9000)
        (hasty,) = self.clients(slow_caching, "two patiences", 20)
        with hasty, patient:
            assert hasty.reply().status == 504
            assert patient.reply().status == 200
        assert slow_caching.classify("two patiences").json()["source"] == "cache"

    def test_one_who_leaves_takes_nobody_along(self, slow_caching: RunningService) -> None:
        first, second = self.clients(slow_caching, "one leaves", 9000, 9000)
        first.close()
        with second:
            assert second.reply().status == 200

    def test_when_all_have_left_it_is_taken_out_of_the_queue(self, slow_caching: RunningService) -> None:
        cancelled = slow_caching.total("cancelled_total", stage="queue")
        for client in self.clients(slow_caching, "all leave", 9000, 9000):
            client.close()
        wait_until(lambda: slow_caching.total("cancelled_total", stage="queue") == cancelled + 2)
        assert slow_caching.classify("all leave").json()["source"] == "model"

    def test_a_failure_is_everybodys_and_each_is_logged_as_if_it_were_alone(self, slow_caching: RunningService) -> None:
        clients = self.clients(slow_caching, f"usb {POISON}", 9000, 9000, 9000)
        replies = [client.reply() for client in clients]
        for client in clients:
            client.close()
        problems = [reply.json() for reply in replies]
        assert {reply.status for reply in replies} == {500}
        assert [problem | {"request_id": ""} for problem in problems] == [problems[0] | {"request_id": ""}] * 3
        logged = {
            record["message"].split()[1]: record["error_trace"]
            for record in slow_caching.records
            if "error_trace" in record
        }
        first, second, third = (logged[problem["request_id"]] for problem in problems)
        assert first == second == third
        assert slow_caching.classify(f"usb {POISON}").status == 500

    def test_a_hit_is_answered_where_anything_else_is_refused(self, slow_caching: RunningService) -> None:
        assert slow_caching.classify("unknown", timeout_ms=200).status == 429
        assert slow_caching.classify("known", timeout_ms=200).json()["source"] == "cache"


class TestWarming:
    def test_the_answers_are_there_before_the_service_is_ready(
        self, start: Start, tmp_path: Path, one_bucket_bundle: Path
    ) -> None:
        queries = [f"shoes {number}" for number in range(60)]
        (tmp_path / "top.txt").write_text("\n".join([*queries, "", queries[0]]))
        service = start(
            bundle=one_bucket_bundle,
            null_ms=100,
            replicas=1,
            cache_bytes=CACHE_BYTES,
            warm_queries=tmp_path / "top.txt",
        )
        wait_until(lambda: service.records_of("replicas are warm"))
        assert service.ops("/readyz").json()["reason"] == "loading: 0 of 1 replicas are warm"
        early = service.classify("usb", timeout_ms=10_000)  # who comes all the same is answered

        service.wait_ready()
        assert early.status == 200
        (record,) = service.records_of("the cache is warm")
        assert (record["queries"], record["of"]) == (60, 60)
        assert {service.classify(query).json()["source"] for query in queries} == {"cache"}
        assert "shoes" not in service.text

    def test_a_file_that_is_not_there_stops_the_start(self, start: Start) -> None:
        service = start(cache_bytes=CACHE_BYTES, warm_queries="/nowhere/top.txt")
        assert service.wait_exit() == 1
        assert service.plain_lines == ["query-intent: warm queries /nowhere/top.txt: No such file or directory"]

    def test_a_service_can_be_stopped_while_it_warms(
        self, start: Start, tmp_path: Path, one_bucket_bundle: Path
    ) -> None:
        (tmp_path / "top.txt").write_text("\n".join(f"shoes {number}" for number in range(2_000)))
        service = start(
            bundle=one_bucket_bundle, null_ms=50, replicas=1, cache_bytes=CACHE_BYTES, warm_queries=tmp_path / "top.txt"
        )
        wait_until(lambda: service.records_of("replicas are warm"))
        service.process.terminate()
        assert service.wait_exit() == 0
        assert service.plain_lines == []
        assert [record["message"] for record in service.records if record["level"] == "ERROR"] == []
