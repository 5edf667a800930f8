"""The path from a query's text to its ranked intents; knows no HTTP."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from app.batching.pool import Outcome, ReplicaPool
from app.errors import InvalidField
from app.ranking import Ranked
from app.text import is_cut, normalise
from app.tokenization import Tokenizer, Tokens


class Prediction(NamedTuple):
    """A query's answer and the seconds of its stages. ``ranked`` is an exception where inference failed on it."""

    ranked: Ranked | Exception
    truncated: bool
    tokens: int
    unknown_tokens: int
    tokenize_s: float
    queue_s: float
    inference_s: float


class Classifier:
    """Normalises, tokenises and runs queries on the pool. Everything here happens on the event loop."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        pool: ReplicaPool,
        *,
        max_tokens: int,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._tokenizer = tokenizer
        self._pool = pool
        self._max_tokens = max_tokens
        self._clock = clock

    def can_classify(self, query: str) -> bool:
        """Whether anything of this query is visible."""
        return bool(normalise(query, max_tokens=self._max_tokens))

    async def classify(self, query: str, *, timeout_s: float) -> Prediction:
        """The answer for one query, within ``timeout_s`` of now.

        Raises ``InvalidField`` for a blank query and what ``ReplicaPool.run`` raises.
        """
        started = self._clock()
        tokens = self._encode(query, "query")
        tokenized = self._clock()
        (outcome,) = await self._pool.run([tokens.ids], deadline=started + timeout_s)
        return _prediction(tokens, tokenized - started, outcome)

    async def classify_list(self, queries: Sequence[str], *, timeout_s: float) -> list[Prediction]:
        """The answers for a list, in order; single queries go ahead of it.

        Raises as ``classify`` does, naming the index of a blank query.
        """
        started = self._clock()
        tokens = [self._encode(query, f"queries[{index}]") for index, query in enumerate(queries)]
        tokenized = self._clock()
        outcomes = await self._pool.run([each.ids for each in tokens], deadline=started + timeout_s, is_bulk=True)
        return [_prediction(each, tokenized - started, outcome) for each, outcome in zip(tokens, outcomes, strict=True)]

    def _encode(self, query: str, field: str) -> Tokens:
        text = normalise(query, max_tokens=self._max_tokens)
        if not text:
            raise InvalidField(field, "is blank", value=query, limit="at least one visible character")
        tokens = self._tokenizer.encode(text)
        if is_cut(query, max_tokens=self._max_tokens):
            tokens = tokens._replace(truncated=True)  # what the cut left out never reached the tokenizer
        return tokens


def _prediction(tokens: Tokens, tokenize_s: float, outcome: Outcome) -> Prediction:
    return Prediction(
        outcome.result,
        tokens.truncated,
        len(tokens.ids),
        tokens.unknown,
        tokenize_s,
        outcome.queue_s,
        outcome.inference_s,
    )
