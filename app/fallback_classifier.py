"""The path from text to ranked intents on which a shopper gets an answer also where the model is late."""

from __future__ import annotations

import time
from collections.abc import Callable

from app.classifier import Classifies, Predicting, Prediction
from app.errors import DeadlineExceeded, NotReady, Overloaded
from app.ranking import Ranked
from app.text import is_cut, normalise

# The model is given up so long before a query's deadline that the reply is still in time: the event loop's timers
# count whole milliseconds, beside which the fallback's own time is nothing.
RESERVE_S = 0.001
# A busy event loop is later than that. How late it was is believed half as much every half second, and leaves the model
# half of the time at least.
HALF_LIFE_S = 0.5
LARGEST_RESERVE = 0.5  # of the time that there is
LATE = (Overloaded, NotReady, DeadlineExceeded)


class FallbackClassifier:
    """Another classifier, but for the single queries that it can't answer in time: ``fallback`` gives their answer.

    Lists wait or are refused, as they are without it: who sends one can send it again. So is a query on which
    inference fails, which is a fault that nobody should paper over.
    """

    def __init__(
        self,
        classifier: Classifies,
        fallback: Callable[[str], Ranked],
        *,
        max_tokens: int,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.can_classify = classifier.can_classify
        self.classify_list = classifier.classify_list
        self._begin = classifier.begin
        self._fallback = fallback
        self._max_tokens = max_tokens
        self._clock = clock
        self._late_s = 0.0  # how late the event loop gave up of late, and when that was
        self._late_at = 0.0

    def begin(self, query: str, *, timeout_s: float) -> Prediction | Predicting:
        """Raises what the other one does, but neither ``Overloaded``, ``NotReady`` nor ``DeadlineExceeded``."""
        started = self._clock()
        reserve_s = RESERVE_S + self._lateness(started)
        patience_s = timeout_s - min(reserve_s, max(RESERVE_S, LARGEST_RESERVE * timeout_s))
        try:
            begun = self._begin(query, timeout_s=patience_s)
        except LATE:
            return self._fall_back(query, started)
        return begun if isinstance(begun, Prediction) else self._or_fall_back(begun, query, started, patience_s)

    async def classify(self, query: str, *, timeout_s: float) -> Prediction:
        """Raises as ``begin`` does."""
        begun = self.begin(query, timeout_s=timeout_s)
        return begun if isinstance(begun, Prediction) else await begun

    async def _or_fall_back(self, begun: Predicting, query: str, started: float, patience_s: float) -> Prediction:
        try:
            return await begun
        except LATE:
            now = self._clock()
            self._late_s = max(now - started - max(0.0, patience_s), self._lateness(now))
            self._late_at = now
            return self._fall_back(query, started)

    def _lateness(self, now: float) -> float:
        return float(self._late_s * 0.5 ** ((now - self._late_at) / HALF_LIFE_S))

    def _fall_back(self, query: str, started: float) -> Prediction:
        given_up = self._clock()
        ranked = self._fallback(normalise(query, max_tokens=self._max_tokens))
        return Prediction(
            ranked,
            "fallback",
            truncated=is_cut(query, max_tokens=self._max_tokens),
            queue_s=given_up - started,
            inference_s=self._clock() - given_up,
        )
