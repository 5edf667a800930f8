"""The composition root of a worker: an engine behind HTTP routes. It builds everything and decides nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from prometheus_client import CollectorRegistry
from starlette.types import Message, Receive, Scope, Send

from app.bundle import Bundle
from app.engine import Engine
from app.error_handlers import add_error_handlers
from app.health import Readiness, ReadinessRule
from app.metrics import NO_SOURCE, Metrics
from app.request_id import request_id_of
from app.routes.health import health_router
from app.routes.intents import IntentRoutes
from app.routes.lean import LeanRoute
from app.routes.model import model_router
from app.settings import Settings
from app.stages import Stages
from app.version import VERSION
from app.warming import read_warm_queries, warm


class Service:
    """One worker's service: an engine behind ``direct`` routes by path and an ASGI application for the others, and
    whether it is draining. ``closes_connections``: each with the next answer on it.

    ``replicas`` is how many copies of the model this worker runs, each on ``span`` cores; ``worker`` its fixed index
    among ``workers``. Raises ``BundleError`` when the bundle can't be served with these settings.
    """

    def __init__(
        self, settings: Settings, bundle: Bundle, *, replicas: int, workers: int = 1, worker: int = 0, span: int = 1
    ) -> None:
        self.is_draining = False
        self.closes_connections = False
        self.all_answered = asyncio.Event()  # set while draining, once no request is in flight
        self.requests_in_flight = 0
        self._settings = settings
        self._workers = workers
        self._worker = worker
        self._bundle = bundle
        self._metrics = Metrics(CollectorRegistry(), worker=worker, slo_s=settings.slo_ms / 1e3)
        self.engine = Engine(
            bundle,
            settings.target,
            replicas=replicas,
            span=span,
            slo_s=settings.slo_ms / 1e3,
            queue_tokens=settings.queue_tokens,
            null_ms=settings.null_ms,
            priors=settings.priors,
            overrides=settings.overrides,
            cache_bytes=settings.cache_bytes,
            cache_ttl_s=settings.cache_ttl_s,
            fallback=settings.fallback == "on",
            on_row=self._metrics.observe_row,
            on_cancelled=self._metrics.count_cancelled,
            on_fault=self._metrics.count_fault,
            on_lookup=self._metrics.count_lookup,
            on_shared=self._metrics.coalesced.inc,
        )
        self._metrics.info.labels(VERSION, bundle.name, self.engine.target.target).set(1)
        self._readiness = ReadinessRule(settings.quorum)
        self._is_open = False
        self._warm_queries: list[str] = []
        if settings.warm_queries is not None and self.engine.cache is not None:
            self._warm_queries = read_warm_queries(
                settings.warm_queries,
                limit=self.engine.cache.capacity,
                is_visible=self.engine.classifier.can_classify,
            )
        intents = IntentRoutes(
            self.engine.classifier,
            self._metrics,
            model=bundle.name,
            thresholds=self.engine.thresholds,
            fallback_thresholds=self.engine.fallback.thresholds if self.engine.fallback is not None else None,
            timeout_s=settings.timeout_ms / 1e3,
            patience_s=lambda: self.engine.patience_s,
            max_queries=settings.max_queries,
        )
        lean = intents.routes(
            max_body_bytes=settings.max_body_bytes,
            max_list_body_bytes=settings.max_list_body_bytes,
            begin=self._begin_request,
            observe=self._end_request,
            closes_connections=lambda: self.closes_connections,
            log_queries=settings.log_queries,
        )
        self.direct = {route.path: route.handler for route in lean}
        self._fastapi = self._make_fastapi(lean)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._fastapi(scope, receive, send)
            return
        self._begin_request()
        try:
            await self._serve_by_fastapi(scope, receive, send)
        finally:
            self._leave()

    def _begin_request(self) -> None:
        self.requests_in_flight += 1
        if self.is_draining:
            self.all_answered.clear()

    def _end_request(self, *, route: str, status: int, source: str, stages: Stages) -> None:
        self._metrics.observe_request(route=route, status=status, source=source, stages=stages)
        self._leave()

    def _leave(self) -> None:
        self.requests_in_flight -= 1
        if self.is_draining and not self.requests_in_flight:
            self.all_answered.set()

    async def open(self, *, least: int | None = None) -> None:
        """Load the replicas, then warm the cache.

        Raises ``StartError`` with what kept a replica from loading, unless ``least`` of them came up.
        """
        await self.engine.open(least=least)
        if least is not None:
            self._readiness.accept_what_is_there()
        if self._warm_queries:
            await warm(self.engine.classifier, self._warm_queries)
            self._warm_queries = []
        self._is_open = True

    def begin_drain(self) -> None:
        """Readiness says no from now on; requests are still answered, each with ``Connection: close``."""
        self.is_draining = self.closes_connections = True
        if not self.requests_in_flight:
            self.all_answered.set()

    def begin_retirement(self) -> None:
        """A successor takes new connections: each reply says ``Connection: close``, and readiness stays as it is."""
        self.closes_connections = True

    def observe_refusal(self, status: int) -> None:
        """Count what a connection was told before there was a request for any route."""
        self._metrics.observe_request(route="connection", status=status, source=NO_SOURCE, stages=Stages())

    def observe_pause(self, generation: int, seconds: float) -> None:
        """Count a stop by the garbage collector."""
        self._metrics.observe_pause(generation, seconds)

    def readiness(self) -> Readiness:
        ready = self.engine.pool.ready if self._is_open else 0
        out = tuple(f"{self._worker}.{replica}" for replica in self.engine.pool.out)
        return self._readiness.judge(ready, self.engine.replicas, is_draining=self.is_draining, out=out)

    def sample(self) -> None:
        """Bring gauges and overrides up to date. Called a few times a second, so that no request pays for it."""
        if self.engine.overrides is not None:
            self.engine.overrides.refresh()
        metrics, pool = self._metrics, self.engine.pool
        metrics.replicas.set(self._workers * self.engine.replicas)  # each worker says it of the whole service
        metrics.replicas_ready.set(pool.ready)
        metrics.inflight.set(self.requests_in_flight)
        backlog = pool.backlog()
        metrics.queue_items.set(backlog.items)
        metrics.queue_tokens.set(backlog.tokens)
        metrics.queue_oldest.set(backlog.oldest_s)

    def describe(self) -> dict[str, Any]:
        """What ``GET /v1/model`` says."""
        manifest, pool = self._bundle.manifest, self.engine.pool
        return {
            "model": self._bundle.name,
            "digest": self._bundle.digest,
            "task": manifest.task,
            "labels": [label.model_dump() for label in manifest.labels],
            "groups": manifest.groups,
            "max_tokens": manifest.max_tokens,
            "temperature": manifest.temperature,
            "abstain_threshold": manifest.abstain_threshold,
            "group_thresholds": self.engine.thresholds.groups,
            "label_priors": manifest.label_priors,
            "deployment_priors": self.engine.priors,
            "quality": manifest.quality,
            "lineage": manifest.lineage,
            "target": self.engine.target.model_dump(),
            "fallback": self.engine.fallback.describe() if self.engine.fallback is not None else None,
            "rows_ms": pool.queue.latency.as_milliseconds() if pool.is_open else {},
            "settings": self._settings.model_dump(mode="json")
            | {"workers": self._workers, "replicas": self.engine.replicas, "target": self.engine.target.target},
        }

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
        self.engine.close()

    async def _serve_by_fastapi(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        status = 500

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                timing = Stages(total=time.perf_counter() - started).server_timing()
                message["headers"] = [
                    *message["headers"],
                    (b"x-request-id", request_id_of(scope).encode("ascii")),
                    (b"server-timing", timing),
                ]
                if self.closes_connections:
                    message["headers"].append((b"connection", b"close"))
            await send(message)

        try:
            await self._fastapi(scope, receive, send_with_headers)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            stages = Stages(total=time.perf_counter() - started)
            self._metrics.observe_request(route=route, status=status, source=NO_SOURCE, stages=stages)
