"""The operations port: health of the whole service and the metrics of all workers, served by the supervisor."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import prometheus_client
import uvicorn
from fastapi import FastAPI, Response

from app.error_handlers import add_error_handlers
from app.health import Readiness
from app.metrics import render_shared
from app.routes.health import health_router
from app.version import VERSION


def create_operations_app(*, readiness: Callable[[], Readiness], metrics: Path) -> FastAPI:
    app = FastAPI(title="query-intent operations", version=VERSION)
    app.include_router(health_router(readiness))
    add_error_handlers(app)

    @app.get("/metrics", summary="Metrics of all workers, in the Prometheus text format")
    def scrape() -> Response:  # a plain function runs in a thread: reading many files must not hold up health
        return Response(render_shared(metrics), media_type=prometheus_client.CONTENT_TYPE_LATEST)

    return app


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class OperationsServer:
    """A uvicorn server in the supervisor's event loop, on a socket that is listening already."""

    def __init__(self, listening: socket.socket, *, readiness: Callable[[], Readiness], metrics: Path) -> None:
        app = create_operations_app(readiness=readiness, metrics=metrics)
        config = uvicorn.Config(
            app, log_config=None, access_log=False, server_header=False, lifespan="off", timeout_graceful_shutdown=1
        )
        self._server = _Server(config)
        self._listening = listening
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._server.serve(sockets=[self._listening]))

    async def stop(self) -> None:
        self._server.should_exit = True
        if self._task is not None:
            await self._task
