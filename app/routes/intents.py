"""``POST /v1/intent`` and ``POST /v1/intents``."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from app.classifier import CacheResult, Classifies, Prediction
from app.error_handlers import problem_document
from app.errors import InvalidField
from app.metrics import Metrics
from app.ranking import Thresholds
from app.routes.lean import Answer, Answering, LeanHandler, LeanRoute, Observer
from app.schemas import IntentListReply, IntentListRequest, IntentReply, IntentRequest
from app.stages import Stages

STATUSES = (400, 408, 413, 415, 422, 429, 500, 503, 504)
# What the cache did for a single query, as RFC 9211 says it; nothing where it was not asked. The queries of a list each
# have their own ``source``.
CACHE_STATUS: dict[CacheResult | None, bytes] = {
    None: b"",
    "hit": b"cache-status: query-intent; hit\r\n",
    "miss": b"cache-status: query-intent; fwd=miss\r\n",
    "joined": b"cache-status: query-intent; fwd=miss; collapsed\r\n",
}


class IntentRoutes:
    """Both routes over one classifier.

    ``model`` is the bundle's ``name@version``; who names no ``timeout_ms`` gets ``timeout_s`` seconds, or the fewer of
    ``patience_s()`` for a single query: it is a search box, which wants an answer within the objective, if need be the
    fallback's. That has thresholds of its own.
    """

    def __init__(
        self,
        classifier: Classifies,
        metrics: Metrics,
        *,
        model: str,
        thresholds: Thresholds,
        fallback_thresholds: Thresholds | None = None,
        timeout_s: float,
        patience_s: Callable[[], float | None] = lambda: None,
        max_queries: int,
    ) -> None:
        self._classifier = classifier
        self._metrics = metrics
        self._model = model
        self._thresholds = thresholds
        self._fallback_thresholds = fallback_thresholds or thresholds
        self._timeout_s = timeout_s
        self._patience_s = patience_s
        self._max_queries = max_queries

    def routes(
        self,
        *,
        max_body_bytes: int,
        max_list_body_bytes: int,
        begin: Callable[[], object],
        observe: Observer,
        closes_connections: Callable[[], bool],
        log_queries: bool,
    ) -> list[LeanRoute]:
        one = LeanHandler(
            "/v1/intent",
            IntentRequest,
            self.classify,
            max_body_bytes=max_body_bytes,
            begin=begin,
            observe=observe,
            closes_connections=closes_connections,
            log_queries=log_queries,
        )
        many = LeanHandler(
            "/v1/intents",
            IntentListRequest,
            self.classify_list,
            max_body_bytes=max_list_body_bytes,
            begin=begin,
            observe=observe,
            closes_connections=closes_connections,
            log_queries=log_queries,
        )
        return [
            LeanRoute(
                "/v1/intent",
                one,
                body=IntentRequest,
                reply=IntentReply,
                summary="The intent of one query",
                statuses=STATUSES,
            ),
            LeanRoute(
                "/v1/intents",
                many,
                body=IntentListRequest,
                reply=IntentListReply,
                summary="The intents of a list of queries",
                statuses=STATUSES,
            ),
        ]

    def classify(self, request: IntentRequest, waited_s: float) -> Answer | Answering:
        timeout_s = self._timeout(request.timeout_ms)
        if request.timeout_ms is None and (patience_s := self._patience_s()) is not None:
            timeout_s = min(timeout_s, patience_s)
        timeout_s -= waited_s
        asked = self._classifier.begin(request.query, timeout_s=timeout_s)
        return self._answer(request, asked) if isinstance(asked, Prediction) else self._answer_later(request, asked)

    async def _answer_later(self, request: IntentRequest, asked: Coroutine[Any, Any, Prediction]) -> Answer:
        return self._answer(request, await asked)

    def _answer(self, request: IntentRequest, prediction: Prediction) -> Answer:
        if isinstance(prediction.ranked, Exception):
            # Several may wait for the same failure; without this each would carry the tracebacks of those before it.
            raise prediction.ranked.with_traceback(None)
        self._metrics.count_unknown_fields(request.model_extra)
        document = self._reply(request.query, prediction, request)
        stages = Stages(prediction.tokenize_s, prediction.queue_s, prediction.inference_s)
        return Answer(document, stages, prediction.source, CACHE_STATUS[prediction.cache])

    async def classify_list(self, request: IntentListRequest, waited_s: float) -> Answer:
        if (size := len(request.queries)) > self._max_queries:
            raise InvalidField("queries", f"holds {size} queries", value=size, limit=self._max_queries)
        timeout_s = self._timeout(request.timeout_ms) - waited_s
        predictions = await self._classifier.classify_list(request.queries, timeout_s=timeout_s)
        self._metrics.count_unknown_fields(request.model_extra)
        results = [
            problem_document(prediction.ranked)
            if isinstance(prediction.ranked, Exception)
            else self._reply(query, prediction, request)
            for query, prediction in zip(request.queries, predictions, strict=True)
        ]
        stages = Stages(
            max(prediction.tokenize_s for prediction in predictions),
            max(prediction.queue_s for prediction in predictions),
            max(prediction.inference_s for prediction in predictions),
        )
        return Answer({"results": results}, stages, "model")

    def _timeout(self, timeout_ms: int | None) -> float:
        return self._timeout_s if timeout_ms is None else timeout_ms / 1e3

    def _reply(self, query: str, prediction: Prediction, request: IntentRequest | IntentListRequest) -> dict[str, Any]:
        assert not isinstance(prediction.ranked, Exception)
        intents, groups = prediction.ranked
        (intent, confidence), (group, _) = intents[0], groups[0]
        self._metrics.observe_prediction(intent, confidence, prediction)
        thresholds = self._fallback_thresholds if prediction.source == "fallback" else self._thresholds
        abstains = request.abstain and not thresholds.are_reached(prediction.ranked)
        return {
            "query": query,
            "intent": None if abstains else intent,
            "confidence": confidence,
            "group": None if abstains else group,
            "intents": [{"intent": name, "confidence": each} for name, each in intents[: request.top_k]],
            "groups": [{"group": name, "confidence": each} for name, each in groups],
            "source": prediction.source,
            "model": self._model,
            "truncated": prediction.truncated,
        }
