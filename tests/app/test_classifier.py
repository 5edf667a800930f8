"""The path from a query's text to its ranked intents, without HTTP."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from app.batching.request import Outcome
from app.classifier import Classifier
from app.errors import InferenceFailed, InvalidField, Overloaded
from app.ranking import Ranked
from app.tokenization import Tokenizer
from tests.fakes import POISON, VirtualClock, answer_of
from tests.tiny_bundle import VOCABULARY

pytestmark = pytest.mark.anyio

MAX_TOKENS = 8
CUT = 8 * MAX_TOKENS  # characters that are looked at


class FakePool:
    """Answers each query with a hash of its tokens at once, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[list[list[int]], float, bool]] = []
        self.refusal: Exception | None = None

    def run(
        self, queries: Sequence[NDArray[np.int64]], *, deadline: float, is_bulk: bool = False
    ) -> Coroutine[Any, Any, list[Outcome]]:
        self.asked.append(([ids.tolist() for ids in queries], deadline, is_bulk))
        if self.refusal is not None:
            raise self.refusal
        return self._outcomes(queries)

    async def _outcomes(self, queries: Sequence[NDArray[np.int64]]) -> list[Outcome]:
        return [Outcome(_answer(ids), 0.25, 0.5) for ids in queries]


def _answer(ids: NDArray[np.int64]) -> Any:
    return InferenceFailed("the model failed on this query") if POISON in ids else answer_of(ids)


class SteadyClock(VirtualClock):
    """Every look at it takes one second."""

    def __call__(self) -> float:
        self.advance(1.0)
        return self.now


@pytest.fixture
def pool() -> FakePool:
    return FakePool()


@pytest.fixture
def classifier(tiny_bundle: Path, pool: Any) -> Classifier:
    tokenizer = Tokenizer(tiny_bundle / "tokenizer.json", max_tokens=MAX_TOKENS, vocabulary=len(VOCABULARY))
    return Classifier(tokenizer, pool, max_tokens=MAX_TOKENS, clock=SteadyClock())


def ids_of(*tokens: str) -> list[int]:
    return [VOCABULARY.index(token) for token in ("[CLS]", *tokens, "[SEP]")]


async def test_a_query_is_normalised_tokenised_and_run(classifier: Classifier, pool: FakePool) -> None:
    prediction = await classifier.classify("  Where is MY order?! ", timeout_s=0.1)
    ids = ids_of("where", "is", "my", "order")
    assert pool.asked == [([ids], 1.1, False)]
    assert prediction.ranked == answer_of(ids)
    assert (prediction.tokens, prediction.unknown_tokens, prediction.truncated) == (6, 0, False)
    assert (prediction.tokenize_s, prediction.queue_s, prediction.inference_s) == (1.0, 0.25, 0.5)


async def test_the_deadline_counts_from_before_tokenising(classifier: Classifier, pool: FakePool) -> None:
    await classifier.classify("order", timeout_s=7.0)
    await classifier.classify_list(["order"], timeout_s=7.0)
    assert [deadline for _, deadline, _ in pool.asked] == [8.0, 10.0]


async def test_a_list_is_answered_in_order_and_lets_single_queries_go_ahead(
    classifier: Classifier, pool: FakePool
) -> None:
    predictions = await classifier.classify_list(["my order", "red shoes", "☃"], timeout_s=0.1)
    expected = [ids_of("my", "order"), ids_of("red", "shoes"), ids_of("[UNK]")]
    assert pool.asked == [(expected, 1.1, True)]
    assert [prediction.ranked for prediction in predictions] == [answer_of(ids) for ids in expected]
    assert [prediction.unknown_tokens for prediction in predictions] == [0, 0, 1]


async def test_an_item_that_failed_in_inference_stands_in_its_place(tiny_bundle: Path, pool: Any) -> None:
    class Spiked:
        def encode(self, text: str) -> Any:
            from app.tokenization import Tokens

            return Tokens(np.array([2, POISON if "bad" in text else 5, 3]), False, 0)

    spiked: Any = Spiked()
    good, bad, fine = await Classifier(spiked, pool, max_tokens=MAX_TOKENS).classify_list(
        ["good", "bad", "fine"], timeout_s=1.0
    )
    assert isinstance(bad.ranked, InferenceFailed)
    assert good.ranked == fine.ranked == answer_of([2, 5, 3])


class TestOverrides:
    """A query that a merchandiser decided never reaches tokenizer or model."""

    @pytest.fixture
    def classifier(self, tiny_bundle: Path, pool: Any) -> Classifier:
        decided = {"gift cards": Ranked([("navigational", 1.0)], [("gift_cards", 1.0)])}
        tokenizer = Tokenizer(tiny_bundle / "tokenizer.json", max_tokens=MAX_TOKENS, vocabulary=len(VOCABULARY))
        return Classifier(tokenizer, pool, max_tokens=MAX_TOKENS, override=decided.get, clock=SteadyClock())

    async def test_it_is_looked_up_in_its_normalised_form_and_answered_at_once(
        self, classifier: Classifier, pool: FakePool
    ) -> None:
        pool.refusal = Overloaded("the backlog is long", retry_after_s=1.0)
        prediction = await classifier.classify(" Gift CARDS!", timeout_s=0.1)
        assert (prediction.source, prediction.tokens) == ("override", 0)
        assert prediction.ranked == Ranked([("navigational", 1.0)], [("gift_cards", 1.0)])
        assert pool.asked == []

    async def test_in_a_list_only_the_others_are_run_and_the_order_is_kept(
        self, classifier: Classifier, pool: FakePool
    ) -> None:
        predictions = await classifier.classify_list(["my order", "gift cards", "red shoes"], timeout_s=0.1)
        assert [prediction.source for prediction in predictions] == ["model", "override", "model"]
        (asked, _, is_bulk) = pool.asked[0]
        assert (asked, is_bulk) == ([ids_of("my", "order"), ids_of("red", "shoes")], True)

    async def test_a_list_of_nothing_else_asks_the_pool_for_nothing(
        self, classifier: Classifier, pool: FakePool
    ) -> None:
        assert len(await classifier.classify_list(["gift cards", "Gift cards"], timeout_s=0.1)) == 2
        assert pool.asked == []


BLANK = ["", " ", "\n\t", "\u200b", "\x00", " " * CUT + "too late"]


@pytest.mark.parametrize("blank", BLANK)
async def test_a_blank_query_is_refused_before_anything_runs(
    classifier: Classifier, pool: FakePool, blank: str
) -> None:
    assert not classifier.can_classify(blank)
    with pytest.raises(InvalidField, match=r"^query: is blank$") as refusal:
        await classifier.classify(blank, timeout_s=0.1)
    assert (refusal.value.field, refusal.value.value) == ("query", blank)
    assert refusal.value.limit == "at least one visible character"
    assert pool.asked == []


@pytest.mark.parametrize("blank", BLANK)
async def test_a_blank_item_refuses_the_list_with_its_index(classifier: Classifier, pool: FakePool, blank: str) -> None:
    with pytest.raises(InvalidField) as refusal:
        await classifier.classify_list(["my order", blank, "shoes"], timeout_s=0.1)
    assert refusal.value.field == "queries[1]"
    assert pool.asked == []


@pytest.mark.parametrize("query", ["?", "a", "靴", "☃"])
async def test_one_visible_character_is_enough(classifier: Classifier, query: str) -> None:
    assert classifier.can_classify(query)
    assert (await classifier.classify(query, timeout_s=0.1)).tokens == 3


@pytest.mark.parametrize(
    ("query", "truncated"),
    [
        ("my " * 6, False),
        ("my " * 7, True),  # nine tokens
        ("order" + " " * (CUT - 5), False),
        ("order" + " " * (CUT - 4), True),  # nobody looked at the last character
        ("a" * 1_000_000, True),
    ],
)
async def test_it_says_when_a_query_was_too_long(classifier: Classifier, query: str, truncated: bool) -> None:
    prediction = await classifier.classify(query, timeout_s=0.1)
    assert prediction.truncated is truncated
    assert prediction.tokens <= MAX_TOKENS


async def test_what_the_pool_refuses_passes_through(classifier: Classifier, pool: FakePool) -> None:
    pool.refusal = Overloaded("16384 of 16384 tokens are waiting", retry_after_s=0.2)
    with pytest.raises(Overloaded):
        await classifier.classify("order", timeout_s=0.1)
    with pytest.raises(Overloaded):
        await classifier.classify_list(["order"], timeout_s=0.1)
