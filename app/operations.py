"""The operations port: health of the whole service and the metrics of all workers, served by the supervisor."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import prometheus_client
import uvicorn
from fastapi import FastAPI, Response
from prometheus_client.registry import Collector

from app.error_handlers import add_error_handlers
from app.health import Readiness
from app.http_protocol import limited
from app.http_server import HttpServer
from app.metrics import render_shared
from app.routes.health import health_router
from app.version import VERSION

# Health checks and scrapers are few and quick; who isn't may not keep the supervisor busy.
MAX_CONNECTIONS = 256
READ_TIMEOUT_S = 10.0


def create_operations_app(
    *, readiness: Callable[[], Readiness], metrics: Path, collectors: Sequence[Collector]
) -> FastAPI:
    app = FastAPI(title="query-intent operations", version=VERSION)
    app.include_router(health_router(readiness))
    add_error_handlers(app)

    @app.get("/metrics", summary="Metrics of all workers and of the machine, in the Prometheus text format")
    def scrape() -> Response:  # a plain function runs in a thread: reading many files must not hold up health
        return Response(render_shared(metrics, collectors), media_type=prometheus_client.CONTENT_TYPE_LATEST)

    return app


class OperationsServer:
    """A uvicorn server in the supervisor's event loop, on a socket that is listening already."""

    def __init__(
        self,
        listening: socket.socket,
        *,
        readiness: Callable[[], Readiness],
        metrics: Path,
        collectors: Sequence[Collector] = (),
        max_connections: int = MAX_CONNECTIONS,
        read_timeout_s: float = READ_TIMEOUT_S,
    ) -> None:
        app = create_operations_app(readiness=readiness, metrics=metrics, collectors=collectors)
        config = uvicorn.Config(
            app,
            http=limited(max_connections=max_connections, read_timeout_s=read_timeout_s),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=1,
        )
        self._server = HttpServer(config)
        self._listening = listening
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._server.serve(sockets=[self._listening]))

    async def stop(self) -> None:
        self._server.should_exit = True
        if self._task is not None:
            await self._task
