"""The composition root of a worker: builds everything from plain values, decides nothing."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from prometheus_client import CollectorRegistry
from starlette.types import Message, Receive, Scope, Send

from app.backends import make_backend
from app.batching.latency import LatencyTable
from app.batching.packing import Row, max_segments
from app.batching.pool import ReplicaPool
from app.batching.queue import BatchQueue
from app.batching.replica import Replica
from app.bundle import Bundle, TargetManifest
from app.classifier import Classifier
from app.error_handlers import add_error_handlers
from app.golden import GoldenCheck
from app.health import Readiness, ReadinessRule
from app.metrics import Metrics
from app.ranking import Ranker
from app.request_id import request_id_of
from app.routes.health import health_router
from app.routes.intents import IntentRoutes
from app.routes.lean import LeanRoute
from app.routes.model import model_router
from app.settings import Settings
from app.stages import Stages
from app.tokenization import Tokenizer
from app.version import VERSION

logger = logging.getLogger(__name__)


class Service:
    """One worker's service: an ASGI application, its replicas, and whether it is draining.

    ``replicas`` is how many copies of the model this worker runs; ``worker`` its fixed index.
    """

    def __init__(self, settings: Settings, bundle: Bundle, *, replicas: int, worker: int = 0) -> None:
        target = choose_target(settings.target, bundle)
        self.is_draining = False
        self.all_answered = asyncio.Event()  # set while draining, once no request is in flight
        self.metrics = Metrics(CollectorRegistry(), worker=worker, slo_s=settings.slo_ms / 1e3)
        self.metrics.info.labels(VERSION, bundle.name, target).set(1)
        self.requests_in_flight = 0
        self._settings = settings
        self._bundle = bundle
        self._target_name = target
        self._target = bundle.target(target) if target != "null" else null_target(bundle)
        self._replica_count = replicas
        self._readiness = ReadinessRule(settings.quorum)
        manifest = bundle.manifest
        self._embeddings = bundle.embeddings()
        self._ranker = Ranker(manifest.labels, temperature=manifest.temperature)
        self._tokenizer = Tokenizer(
            bundle.path / "tokenizer.json", max_tokens=manifest.max_tokens, vocabulary=len(self._embeddings.word)
        )
        self.pool = ReplicaPool(on_row=self.metrics.observe_row, on_cancelled=self.metrics.count_cancelled)
        classifier = Classifier(self._tokenizer, self.pool, max_tokens=manifest.max_tokens)
        intents = IntentRoutes(
            classifier,
            self.metrics,
            model=bundle.name,
            abstain_threshold=manifest.abstain_threshold,
            timeout_s=settings.timeout_ms / 1e3,
            max_queries=settings.max_queries,
        )
        lean = intents.routes(
            max_body_bytes=settings.max_body_bytes,
            max_list_body_bytes=settings.max_list_body_bytes,
            is_draining=lambda: self.is_draining,
        )
        self._lean = {route.path: route.handler for route in lean}
        self._fastapi = self._make_fastapi(lean)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._fastapi(scope, receive, send)
            return
        handler = self._lean.get(scope["path"])
        self.requests_in_flight += 1
        try:
            if handler is not None and scope["method"] == "POST":
                await handler(scope, receive, send)
            else:
                await self._serve_by_fastapi(scope, receive, send)
        finally:
            self.requests_in_flight -= 1
            if self.is_draining and not self.requests_in_flight:
                self.all_answered.set()

    def begin_drain(self) -> None:
        """Readiness says no from now on; requests are still answered, each with ``Connection: close``."""
        self.is_draining = True
        if not self.requests_in_flight:
            self.all_answered.set()

    async def open(self) -> None:
        """Load and warm every replica. Raises ``StartError`` with what kept one from it."""
        backend = make_backend(
            self._target_name,
            self._bundle.path,
            self._target,
            labels=len(self._bundle.manifest.labels),
            null_ms=self._settings.null_ms,
        )
        canary = None
        if self._target_name != "null":
            canary = GoldenCheck(
                self._bundle.manifest.golden,
                tokenizer=self._tokenizer,
                ranker=self._ranker,
                max_tokens=self._bundle.manifest.max_tokens,
                tolerance=self._target.tolerance,
                one_query_a_row=self._target.one_query_a_row,
            )
        replicas = [
            Replica(
                index,
                backend=backend,
                rows={bucket: self._make_row(bucket) for bucket in self._target.buckets},
                decode=self._ranker.rank,
                canary=canary,
                source=self.pool,
            )
            for index in range(self._replica_count)
        ]
        await self.pool.open(replicas, self._make_queue)
        logger.info("ready", extra={"rows_ms": self.pool.queue.latency.as_milliseconds()})

    def close(self) -> None:
        self.pool.close()

    def readiness(self) -> Readiness:
        return self._readiness.judge(self.pool.ready, self._replica_count, is_draining=self.is_draining)

    def sample(self) -> None:
        """Bring the gauges up to date. Called a few times a second: they say what is, and cost requests nothing."""
        metrics, pool = self.metrics, self.pool
        metrics.replicas.set(self._replica_count)
        metrics.replicas_ready.set(pool.ready)
        metrics.inflight.set(self.requests_in_flight)
        if pool.is_open:
            metrics.queue_items.set(len(pool.queue))
            metrics.queue_tokens.set(pool.queue.tokens)
            metrics.queue_oldest.set(pool.queue.oldest_age(time.perf_counter()))

    def describe(self) -> dict[str, Any]:
        """What ``GET /v1/model`` says."""
        manifest, target = self._bundle.manifest, self._target
        return {
            "model": self._bundle.name,
            "digest": self._bundle.digest,
            "task": manifest.task,
            "labels": [label.model_dump() for label in manifest.labels],
            "groups": manifest.groups,
            "max_tokens": manifest.max_tokens,
            "temperature": manifest.temperature,
            "abstain_threshold": manifest.abstain_threshold,
            "label_priors": manifest.label_priors,
            "quality": manifest.quality,
            "lineage": manifest.lineage,
            "target": target.model_dump(),
            "rows_ms": self.pool.queue.latency.as_milliseconds() if self.pool.is_open else {},
            "settings": self._settings.model_dump(mode="json") | {"replicas": self._replica_count},
        }

    def _make_queue(self, seconds: list[dict[int, float]]) -> BatchQueue:
        """The queue, with the slowest replica's time for each bucket: a budget that holds on every one of them."""
        table = {bucket: max(each[bucket] for each in seconds) for bucket in self._target.buckets}
        return BatchQueue(
            LatencyTable(table),
            slo_s=self._settings.slo_ms / 1e3,
            max_tokens=self._settings.queue_tokens,
            segments=self._segments,
        )

    def _segments(self, bucket: int) -> int:
        return 1 if self._target.one_query_a_row else max_segments(bucket)

    def _make_row(self, bucket: int) -> Row:
        # The null target averages a query's tokens, so that its answer depends on all of them.
        pooling = "mean" if self._target_name == "null" else self._bundle.manifest.pooling
        return Row(bucket, self._embeddings, segments=self._segments(bucket), pooling=pooling)

    def _make_fastapi(self, lean: list[LeanRoute]) -> FastAPI:
        app = FastAPI(
            title="query-intent",
            version=VERSION,
            description="What a shopper wants, from the text of the search box: labels, groups and confidences.",
            lifespan=self._lifespan,
        )
        app.router.routes.extend(lean)
        app.include_router(model_router(self.describe))
        app.include_router(health_router(self.readiness))
        add_error_handlers(app)
        return app

    @asynccontextmanager
    async def _lifespan(self, _app: FastAPI) -> AsyncIterator[None]:
        yield
        self.close()

    async def _serve_by_fastapi(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        status = 500

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", request_id_of(scope).encode("ascii"))]
                if self.is_draining:
                    message["headers"].append((b"connection", b"close"))
            await send(message)

        try:
            await self._fastapi(scope, receive, send_with_headers)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            stages = Stages(total=time.perf_counter() - started)
            self.metrics.observe_request(route=route, status=status, source="none", stages=stages)


def choose_target(wanted: str, bundle: Bundle) -> str:
    """The target to run: ``wanted``, or with "auto" the best that bundle and machine have."""
    if wanted != "auto":
        return wanted
    for target in ("cpu", "torch"):
        if target in bundle.targets:
            return target
    return bundle.target("cpu").target  # raises, naming what there is and how to make one


def null_target(bundle: Bundle) -> TargetManifest:
    """What the null target would be compiled to: the buckets of the bundle's first target, or a plain choice."""
    buckets = bundle.target(bundle.targets[0]).buckets if bundle.targets else [16, 32, 64]
    return TargetManifest(target="null", engine={}, precision="none", buckets=buckets, tolerance=1.0)
