"""Warm queries: read with their mistakes named, answered in order of the file, and never for longer than the limit."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from app.classifier import Prediction
from app.errors import DeadlineExceeded, InferenceFailed, NotReady, Overloaded, SettingsError
from app.ranking import Ranked
from app.warming import CHUNK, LIMIT_S, read_warm_queries, warm
from tests.fakes import VirtualClock

pytestmark = pytest.mark.anyio

ANSWER = Ranked([("shoes", 1.0)], [("shop", 1.0)])


class SlowClassifier:
    """Takes one second a list, and does what the test says instead of answering for as long as it says something."""

    def __init__(self, clock: VirtualClock, *instead: Exception) -> None:
        self.asked: list[str] = []
        self.timeouts: list[float] = []
        self._clock = clock
        self._instead = list(instead)

    async def classify_list(self, queries: Sequence[str], *, timeout_s: float) -> list[Prediction]:
        self._clock.advance(1.0)
        self.timeouts.append(timeout_s)
        if self._instead:
            raise self._instead.pop(0)
        self.asked += queries
        return [Prediction(ANSWER if query != "bad" else InferenceFailed("it failed"), "model") for query in queries]


def summary(caplog: pytest.LogCaptureFixture) -> tuple[int, int, float]:
    record: Any = caplog.records[-1]
    assert record.getMessage() == "the cache is warm"
    return record.queries, record.of, record.seconds


@pytest.fixture(autouse=True)
def _info(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


class TestReading:
    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("top.txt", "red shoes\n\nmy order\nred shoes\n \nusb cable\n"),
            ("top.csv", 'query,count\nred shoes,9\n"my order",8\n,7\nusb cable,6\n'),
            ("top.tsv", "count\tquery\n9\tred shoes\n8\tmy order\n7\tusb cable\n"),
            ("top.jsonl", '{"query": "red shoes"}\n{"query": "my order"}\n{"query": "usb cable"}\n'),
        ],
    )
    def test_it_takes_the_different_ones_in_their_order(self, tmp_path: Path, name: str, content: str) -> None:
        (tmp_path / name).write_text(content)
        queries = read_warm_queries(tmp_path / name, limit=10, is_visible=lambda text: bool(text.strip()))
        assert queries == ["red shoes", "my order", "usb cable"]

    @pytest.mark.parametrize("limit", [1, 2, 3, 4])
    def test_it_takes_no_more_than_the_cache_holds(self, tmp_path: Path, limit: int) -> None:
        (tmp_path / "top.txt").write_text("a\nb\nb\nc\n")
        assert read_warm_queries(tmp_path / "top.txt", limit=limit, is_visible=bool) == ["a", "b", "c"][:limit]

    @pytest.mark.parametrize(
        ("name", "content", "reason"),
        [
            ("nowhere.txt", None, "No such file or directory"),
            ("top.csv", b"text;count\n", "line 1: no column 'query' or 'text'"),
            ("top.txt", b"shoes\n\xff\n", "line 2: can't be read: byte 0xff is not UTF-8"),
            ("top.parquet", b"", "don't know .parquet"),
        ],
    )
    def test_a_file_that_is_wrong_is_named_with_its_line(
        self, tmp_path: Path, name: str, content: bytes | None, reason: str
    ) -> None:
        path = tmp_path / name
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(SettingsError) as refusal:
            read_warm_queries(path, limit=10, is_visible=bool)
        assert str(refusal.value).startswith(f"warm queries {path}")
        assert reason in str(refusal.value)


class TestWarming:
    async def test_every_query_is_answered_in_order_and_the_log_says_how_far_it_is(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        clock = VirtualClock()
        classifier: Any = SlowClassifier(clock)
        queries = [f"secret {number}" for number in range(5 * CHUNK + 1)]
        await warm(classifier, queries, clock=clock)
        assert classifier.asked == queries
        assert [record.getMessage() for record in caplog.records] == ["warming the cache"] * 3 + ["the cache is warm"]
        assert summary(caplog) == (len(queries), len(queries), 6.0)
        assert "secret" not in str([record.__dict__ for record in caplog.records])

    async def test_it_ends_at_its_limit(self, caplog: pytest.LogCaptureFixture) -> None:
        clock = VirtualClock()
        classifier: Any = SlowClassifier(clock)
        await warm(classifier, ["shoes"] * 1000 * CHUNK, clock=clock)
        assert summary(caplog) == (LIMIT_S * CHUNK, 1000 * CHUNK, LIMIT_S)
        assert (classifier.timeouts[0], classifier.timeouts[-1]) == (LIMIT_S, 1.0)

    async def test_a_list_that_is_refused_is_left_out(self, caplog: pytest.LogCaptureFixture) -> None:
        clock = VirtualClock()
        classifier: Any = SlowClassifier(clock, Overloaded("the backlog is long", retry_after_s=0.0))
        await warm(classifier, ["a"] * CHUNK + ["b"] * CHUNK, clock=clock)
        assert classifier.asked == ["b"] * CHUNK
        assert summary(caplog)[:2] == (CHUNK, 2 * CHUNK)

    async def test_one_that_fails_is_not_counted(self, caplog: pytest.LogCaptureFixture) -> None:
        clock = VirtualClock()
        classifier: Any = SlowClassifier(clock)
        await warm(classifier, ["good", "bad", "fine"], clock=clock)
        assert summary(caplog)[:2] == (2, 3)

    @pytest.mark.parametrize("error", [NotReady("the service is stopping"), DeadlineExceeded("it did not come")])
    async def test_where_nothing_is_answered_any_more_it_ends_and_says_why(
        self, caplog: pytest.LogCaptureFixture, error: Exception
    ) -> None:
        clock = VirtualClock()
        classifier: Any = SlowClassifier(clock, error)
        await warm(classifier, ["a"] * 2 * CHUNK, clock=clock)
        assert classifier.asked == []
        assert caplog.records[0].getMessage() == "warming the cache ended early"
        assert summary(caplog)[:2] == (0, 2 * CHUNK)
