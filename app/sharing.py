"""The path from text to ranked intents on which nothing is computed twice: a cache, and a join of what is in flight."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from app.batching.pool import ReplicaPool
from app.batching.request import Outcome
from app.cache import AnswerCache
from app.classifier import QUERIES_A_TURN, CacheResult, Classifier, Predicting, Prediction, prediction_of
from app.coalescing import Flight, Flights
from app.ranking import Ranked
from app.text import is_cut
from app.tokenization import Tokenizer, Tokens


class SharingClassifier(Classifier):
    """A classifier that answers from its cache, else waits for whoever computes the same text, else computes it.

    A hit needs neither room in the queue nor a replica. ``on_lookup`` is told of each text looked up whether the cache
    had it, ``on_shared`` how many queries shared a computation that was not their own.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        pool: ReplicaPool,
        cache: AnswerCache,
        *,
        max_tokens: int,
        override: Callable[[str], Ranked | None] = lambda _text: None,
        on_lookup: Callable[[bool], None] = lambda _is_hit: None,
        on_shared: Callable[[int], None] = lambda _count: None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        super().__init__(tokenizer, pool, max_tokens=max_tokens, override=override, clock=clock)
        self._cache = cache
        self._flights = Flights(pool, on_landed=self._remember, clock=clock)
        self._on_lookup = on_lookup
        self._on_shared = on_shared

    def begin(self, query: str, *, timeout_s: float) -> Prediction | Predicting:
        started = self._clock()
        text = self._normalise(query, "query")
        if (known := self._recall(text)) is not None:
            return self._for(query, known)
        deadline = started + timeout_s
        result: CacheResult = "joined"
        flight = self._flights.join(text, deadline=deadline)
        if flight is None:
            result = "miss"
            (flight,) = self._flights.start({text: self._tokenizer.encode(text)}, deadline=deadline)
        else:
            self._on_shared(1)
        tokenize_s = self._clock() - started
        landing = self._flights.wait([flight], deadline=deadline)
        return self._landed(query, flight.tokens, tokenize_s, result, landing)

    async def _landed(
        self,
        query: str,
        tokens: Tokens,
        tokenize_s: float,
        result: CacheResult,
        landing: Coroutine[Any, Any, list[Outcome]],
    ) -> Prediction:
        (outcome,) = await landing
        return self._for(query, prediction_of(tokens, tokenize_s, outcome, result))

    async def classify_list(self, queries: Sequence[str], *, timeout_s: float) -> list[Prediction]:
        started = self._clock()
        deadline = started + timeout_s
        texts = [self._normalise(query, f"queries[{index}]") for index, query in enumerate(queries)]
        answers: dict[str, Prediction] = {}
        tokens: dict[str, Tokens] = {}
        for number, text in enumerate(dict.fromkeys(texts), 1):
            if (known := self._recall(text)) is not None:
                answers[text] = known
            else:
                tokens[text] = self._tokenizer.encode(text)
            if number % QUERIES_A_TURN == 0:
                await asyncio.sleep(0)  # a list must not keep the event loop from a shopper's query
        # From here to the wait nothing is awaited, so that no flight lands before this list is on it.
        flights = {
            text: flight
            for text in tokens
            if (flight := self._flights.join(text, deadline=deadline, is_bulk=True)) is not None
        }
        own = {text: each for text, each in tokens.items() if text not in flights}
        if own:
            flights |= zip(own, self._flights.start(own, deadline=deadline, is_bulk=True), strict=True)
        if shared := sum(text in tokens for text in texts) - len(own):
            self._on_shared(shared)
        tokenized = self._clock()
        outcomes = await self._flights.wait(list(flights.values()), deadline=deadline) if flights else []
        for (text, flight), outcome in zip(flights.items(), outcomes, strict=True):
            result: CacheResult = "miss" if text in own else "joined"
            answers[text] = prediction_of(flight.tokens, tokenized - started, outcome, result)
        return [self._for(query, answers[text]) for query, text in zip(queries, texts, strict=True)]

    def _recall(self, text: str) -> Prediction | None:
        """The answer that needs no model: an override, which goes before all, or one of before."""
        if (ranked := self._override(text)) is not None:
            return Prediction(ranked, "override")
        known = self._cache.get(text)
        self._on_lookup(known is not None)
        return Prediction(known.ranked, "cache", known.truncated, cache="hit") if known is not None else None

    def _remember(self, flight: Flight, result: Any) -> None:
        if not isinstance(result, Exception):
            self._cache.put(flight.text, result, truncated=flight.tokens.truncated)

    def _for(self, query: str, prediction: Prediction) -> Prediction:
        """The answer to a text as this query's: it may have had more behind the text that was looked at."""
        if prediction.source != "override" and is_cut(query, max_tokens=self._max_tokens):
            return prediction._replace(truncated=True)
        return prediction
