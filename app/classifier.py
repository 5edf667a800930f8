"""The path from a query's text to its ranked intents; knows no HTTP."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from app.batching.pool import ReplicaPool
from app.batching.request import Outcome
from app.errors import InvalidField
from app.ranking import Ranked
from app.text import is_cut, normalise
from app.tokenization import Tokenizer, Tokens

QUERIES_A_TURN = 16  # of a list, tokenised before others get their turn: well under a millisecond

Source = Literal["model", "cache", "override", "fallback"]
# What the cache did for a query: it had the answer, it had not, or somebody was having it computed already.
CacheResult = Literal["hit", "miss", "joined"]


class Prediction(NamedTuple):
    """A query's answer, where it comes from, and the seconds of its stages.

    ``ranked`` is an exception where inference failed on it; ``tokens`` is 0 where nothing was tokenised; ``cache`` is
    ``None`` where the cache was not asked.
    """

    ranked: Ranked | Exception
    source: Source
    truncated: bool = False
    tokens: int = 0
    unknown_tokens: int = 0
    tokenize_s: float = 0.0
    queue_s: float = 0.0
    inference_s: float = 0.0
    cache: CacheResult | None = None


Predicting = Coroutine[Any, Any, Prediction]


class Classifies(Protocol):
    """From text to ranked intents, with or without what may stand before the model or behind it."""

    def can_classify(self, query: str) -> bool:
        """Whether anything of this query is visible."""
        ...

    def begin(self, query: str, *, timeout_s: float) -> Prediction | Predicting:
        """The answer where that needs no row, else what to await for it, which must be awaited.

        Raises ``InvalidField`` for a blank query, and at once what admission would raise.
        """
        ...

    async def classify(self, query: str, *, timeout_s: float) -> Prediction:
        """The answer for one query, within ``timeout_s`` of now. Raises ``InvalidField`` for a blank one."""
        ...

    async def classify_list(self, queries: Sequence[str], *, timeout_s: float) -> list[Prediction]:
        """The answers for a list, in order; single queries go ahead of it."""
        ...


class Classifier:
    """Normalises, tokenises and runs queries on the pool. Everything here happens on the event loop.

    ``override`` gives the answer of a normalised query that needs no model.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        pool: ReplicaPool,
        *,
        max_tokens: int,
        override: Callable[[str], Ranked | None] = lambda _text: None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._tokenizer = tokenizer
        self._pool = pool
        self._max_tokens = max_tokens
        self._override = override
        self._clock = clock

    def can_classify(self, query: str) -> bool:
        """Whether anything of this query is visible."""
        return bool(normalise(query, max_tokens=self._max_tokens))

    def begin(self, query: str, *, timeout_s: float) -> Prediction | Predicting:
        started = self._clock()
        text = self._normalise(query, "query")
        if (ranked := self._override(text)) is not None:
            return Prediction(ranked, "override")
        tokens = self._encode(query, text)
        deadline = started + timeout_s
        tokenize_s = self._clock() - started
        return self._outcome(tokens, tokenize_s, self._pool.run([tokens.ids], deadline=deadline))

    async def classify(self, query: str, *, timeout_s: float) -> Prediction:
        """The answer for one query, within ``timeout_s`` of now.

        Raises ``InvalidField`` for a blank query and what ``ReplicaPool.run`` raises.
        """
        begun = self.begin(query, timeout_s=timeout_s)
        return begun if isinstance(begun, Prediction) else await begun

    async def _outcome(
        self, tokens: Tokens, tokenize_s: float, running: Coroutine[Any, Any, list[Outcome]]
    ) -> Prediction:
        (outcome,) = await running
        return prediction_of(tokens, tokenize_s, outcome)

    async def classify_list(self, queries: Sequence[str], *, timeout_s: float) -> list[Prediction]:
        """The answers for a list, in order; single queries go ahead of it.

        Raises as ``classify`` does, naming the index of a blank query.
        """
        started = self._clock()
        texts = [self._normalise(query, f"queries[{index}]") for index, query in enumerate(queries)]
        overrides = [self._override(text) for text in texts]
        tokens = []
        for query, text, ranked in zip(queries, texts, overrides, strict=True):
            if ranked is None:
                tokens.append(self._encode(query, text))
                if len(tokens) % QUERIES_A_TURN == 0:
                    await asyncio.sleep(0)  # a list must not keep the event loop from a shopper's query
        tokenized = self._clock()
        ids = [each.ids for each in tokens]
        outcomes = await self._pool.run(ids, deadline=started + timeout_s, is_bulk=True) if ids else []
        predicted = (
            prediction_of(each, tokenized - started, outcome) for each, outcome in zip(tokens, outcomes, strict=True)
        )
        return [next(predicted) if ranked is None else Prediction(ranked, "override") for ranked in overrides]

    def _normalise(self, query: str, field: str) -> str:
        text = normalise(query, max_tokens=self._max_tokens)
        if not text:
            raise InvalidField(field, "is blank", value=query, limit="at least one visible character")
        return text

    def _encode(self, query: str, text: str) -> Tokens:
        tokens = self._tokenizer.encode(text)
        if is_cut(query, max_tokens=self._max_tokens):
            tokens = tokens._replace(truncated=True)  # what the cut left out never reached the tokenizer
        return tokens


def prediction_of(tokens: Tokens, tokenize_s: float, outcome: Outcome, cache: CacheResult | None = None) -> Prediction:
    return Prediction(
        outcome.result,
        "model",
        tokens.truncated,
        len(tokens.ids),
        tokens.unknown,
        tokenize_s,
        outcome.queue_s,
        outcome.inference_s,
        cache,
    )
