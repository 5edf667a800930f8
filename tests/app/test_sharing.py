"""The path on which nothing is computed twice: the cache first, then whoever computes the same text, then the queue."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from app.batching.queue import State
from app.cache import AnswerCache
from app.classifier import Prediction
from app.errors import InferenceFailed, InvalidField, NotReady, Overloaded
from app.ranking import Ranked
from app.sharing import SharingClassifier
from app.tokenization import Tokenizer
from tests.fakes import ManualPool, VirtualClock
from tests.tiny_bundle import VOCABULARY

pytestmark = pytest.mark.anyio

MAX_TOKENS = 8
CUT = 8 * MAX_TOKENS  # characters that are looked at
SHOES = Ranked([("shoes", 0.9), ("order", 0.1)], [("shop", 0.9), ("help", 0.1)])
ORDER = Ranked([("order", 0.8), ("shoes", 0.2)], [("help", 0.8), ("shop", 0.2)])
DECIDED = Ranked([("navigational", 1.0)], [("gift_cards", 1.0)])


class Counted:
    """What the classifier tells its observers."""

    def __init__(self) -> None:
        self.lookups: Counter[bool] = Counter()
        self.shared = 0

    def on_lookup(self, is_hit: bool) -> None:
        self.lookups[is_hit] += 1

    def on_shared(self, count: int) -> None:
        self.shared += count


@pytest.fixture
def pool() -> ManualPool:
    return ManualPool()


@pytest.fixture
def counted() -> Counted:
    return Counted()


@pytest.fixture
def classifier(tiny_bundle: Path, pool: Any, counted: Counted) -> SharingClassifier:
    clock = VirtualClock()
    return SharingClassifier(
        Tokenizer(tiny_bundle / "tokenizer.json", max_tokens=MAX_TOKENS, vocabulary=len(VOCABULARY)),
        pool,
        AnswerCache(
            max_bytes=65_536, ttl_s=60, model="tiny@1", intents=["shoes", "order"], groups=["shop", "help"], clock=clock
        ),
        max_tokens=MAX_TOKENS,
        override={"gift cards": DECIDED}.get,
        on_lookup=counted.on_lookup,
        on_shared=counted.on_shared,
        clock=clock,
    )


async def computed(pool: ManualPool, answer: Any, *results: Any) -> Any:
    """What ``answer`` comes to when the pool gives these results to what it then holds."""
    task = asyncio.ensure_future(answer)
    await asyncio.sleep(0)
    waiting = [entry for entry in pool.admitted if entry.state is not State.DONE]
    for entry, result in zip(waiting, results, strict=True):
        pool.settle(entry, result, queue_s=0.25, inference_s=0.5)
    return await task


def ids_of(*tokens: str) -> list[int]:
    return [VOCABULARY.index(token) for token in ("[CLS]", *tokens, "[SEP]")]


class TestOneQuery:
    async def test_it_is_computed_once_and_repeated_from_the_cache(
        self, classifier: SharingClassifier, pool: ManualPool, counted: Counted
    ) -> None:
        first = await computed(pool, classifier.classify("red shoes", timeout_s=1), SHOES)
        assert first == Prediction(SHOES, "model", False, 4, 0, 0.0, 0.25, 0.5, "miss")
        again = await classifier.classify("  RED shoes! ", timeout_s=1)
        assert again == Prediction(SHOES, "cache", cache="hit")
        assert [entry.token_ids.tolist() for entry in pool.admitted] == [ids_of("red", "shoes")]
        assert (counted.lookups, counted.shared) == ({False: 1, True: 1}, 0)

    async def test_the_same_one_in_flight_is_waited_for_and_not_tokenised_again(
        self, classifier: SharingClassifier, pool: ManualPool, counted: Counted
    ) -> None:
        both = asyncio.gather(
            classifier.classify("red shoes", timeout_s=1), classifier.classify("Red Shoes", timeout_s=2)
        )
        first, second = await computed(pool, both, SHOES)
        assert (first.cache, second.cache, second.source) == ("miss", "joined", "model")
        assert (second.ranked, second.tokens, second.unknown_tokens) == (SHOES, 4, 0)
        assert (counted.lookups, counted.shared) == ({False: 2}, 1)

    @pytest.mark.parametrize(
        "refusal", [Overloaded("the backlog is long", retry_after_s=1.0), NotReady("no replica of the model is ready")]
    )
    async def test_a_hit_needs_neither_room_in_the_queue_nor_a_replica(
        self, classifier: SharingClassifier, pool: ManualPool, refusal: Exception
    ) -> None:
        await computed(pool, classifier.classify("red shoes", timeout_s=1), SHOES)
        pool.refusal = refusal
        assert (await classifier.classify("red shoes", timeout_s=1)).source == "cache"
        with pytest.raises(type(refusal)):
            await classifier.classify("my order", timeout_s=1)

    async def test_what_failed_is_not_kept(self, classifier: SharingClassifier, pool: ManualPool) -> None:
        failure = InferenceFailed("the model failed on this query")
        assert (await computed(pool, classifier.classify("red shoes", timeout_s=1), failure)).ranked is failure
        assert (await computed(pool, classifier.classify("red shoes", timeout_s=1), SHOES)).ranked == SHOES

    async def test_an_override_goes_before_the_cache_and_is_not_kept(
        self, classifier: SharingClassifier, counted: Counted
    ) -> None:
        assert await classifier.classify("Gift cards", timeout_s=1) == Prediction(DECIDED, "override")
        assert counted.lookups == {}

    @pytest.mark.parametrize(
        ("query", "truncated"),
        [("my " * 6, False), ("my " * 7, True), ("order" + " " * (CUT - 5), False), ("order" + " " * (CUT - 4), True)],
    )
    async def test_a_hit_says_as_well_when_the_query_was_too_long(
        self, classifier: SharingClassifier, pool: ManualPool, query: str, truncated: bool
    ) -> None:
        await computed(pool, classifier.classify(query.strip(), timeout_s=1), ORDER)
        known = await classifier.classify(query, timeout_s=1)
        assert (known.source, known.truncated) == ("cache", truncated)

    async def test_a_blank_query_is_refused_before_anything_is_looked_up(
        self, classifier: SharingClassifier, counted: Counted
    ) -> None:
        with pytest.raises(InvalidField, match=r"^query: is blank$"):
            await classifier.classify(" ", timeout_s=1)
        assert counted.lookups == {}


class TestLists:
    async def test_repeats_share_what_is_known_is_not_computed_and_the_order_is_kept(
        self, classifier: SharingClassifier, pool: ManualPool, counted: Counted
    ) -> None:
        await computed(pool, classifier.classify("red shoes", timeout_s=1), SHOES)
        queries = ["my order", "Gift cards", "red shoes", "MY ORDER", "my order?", "red shoes"]
        predictions = await computed(pool, classifier.classify_list(queries, timeout_s=1), ORDER)
        sources = ["model", "override", "cache", "model", "model", "cache"]
        assert [prediction.source for prediction in predictions] == sources
        assert [prediction.ranked for prediction in predictions] == [ORDER, DECIDED, SHOES, ORDER, ORDER, SHOES]
        assert [entry.is_bulk for entry in pool.admitted] == [False, True]
        assert (counted.lookups, counted.shared) == ({False: 2, True: 1}, 2)

    async def test_an_item_joins_the_single_query_that_is_in_flight(
        self, classifier: SharingClassifier, pool: ManualPool, counted: Counted
    ) -> None:
        single = asyncio.ensure_future(classifier.classify("red shoes", timeout_s=1))
        await asyncio.sleep(0)
        predictions = await computed(
            pool, classifier.classify_list(["my order", "red shoes"], timeout_s=1), SHOES, ORDER
        )
        assert [prediction.ranked for prediction in predictions] == [ORDER, SHOES]
        assert [prediction.cache for prediction in predictions] == ["miss", "joined"]
        assert (await single).ranked == SHOES
        assert counted.shared == 1

    async def test_a_list_of_what_is_known_asks_the_pool_for_nothing(
        self, classifier: SharingClassifier, pool: ManualPool
    ) -> None:
        await computed(pool, classifier.classify_list(["red shoes", "my order"], timeout_s=1), SHOES, ORDER)
        pool.refusal = Overloaded("the backlog is long", retry_after_s=1.0)
        predictions = await classifier.classify_list(["my order", "red shoes"], timeout_s=1)
        assert [prediction.ranked for prediction in predictions] == [ORDER, SHOES]

    async def test_one_that_fails_stands_in_every_place_of_its_text(
        self, classifier: SharingClassifier, pool: ManualPool
    ) -> None:
        failure = InferenceFailed("the model failed on this query")
        queries = ["red shoes", "my order", "red shoes"]
        predictions = await computed(pool, classifier.classify_list(queries, timeout_s=1), failure, ORDER)
        assert [prediction.ranked for prediction in predictions] == [failure, ORDER, failure]

    async def test_a_blank_item_refuses_the_list_with_its_index(
        self, classifier: SharingClassifier, pool: ManualPool
    ) -> None:
        with pytest.raises(InvalidField) as refusal:
            await classifier.classify_list(["red shoes", ""], timeout_s=1)
        assert refusal.value.field == "queries[1]"
        assert pool.admitted == []
