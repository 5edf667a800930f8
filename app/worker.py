"""A worker: one process, one event loop, one batching queue, its own slice of the cores.

Started by the supervisor as ``python -m app.worker ORDERS``; it shares the listening socket with its siblings,
and on the status board how many connections each of them has.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
import sys
import time

import uvicorn
import uvloop

from app.bundle import Bundle
from app.collector_pauses import collector_pauses
from app.errors import StartError
from app.http_protocol import limited
from app.http_server import HttpServer
from app.logs import configure_logging
from app.main import Service
from app.metrics import share_by_slot
from app.orders import EXIT_REPLICAS_LOST, EXIT_START_FAILED, Orders
from app.status_board import EMPTY, NOT_ACCEPTING, Line, StatusBoard, WorkerState, bits_of

logger = logging.getLogger(__name__)

HEARTBEAT_S = 0.25
# A replica thread in Python code gives the loop its turn after this long instead of CPython's 5 ms, which is half of
# the latency objective.
SWITCH_INTERVAL_S = 0.0005
# What is refused at the drain's bound has its answer by then.
REFUSED_S = 1.0


class Worker:
    def __init__(self, orders: Orders) -> None:
        settings = orders.settings
        self._orders = orders
        self._board = StatusBoard(orders.board)
        self._service = Service(
            settings,
            Bundle(orders.bundle, address=orders.address),
            replicas=orders.replicas,
            workers=orders.workers,
            worker=orders.index,
            span=orders.span,
        )
        protocol = limited(
            max_connections=settings.max_connections,
            read_timeout_s=settings.read_timeout_s,
            observe=self._service.observe_refusal,
            direct=self._service.direct,
        )
        config = uvicorn.Config(
            self._service,
            http=protocol,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            proxy_headers=False,  # the client's address is used nowhere
            server_header=False,
            timeout_keep_alive=settings.keep_alive_s,
        )
        self._server = HttpServer(
            config,
            compare=self._compare_connections,
            # Not before what waits has been refused: this ends what runs without an end.
            patience_s=settings.drain_timeout_s + REFUSED_S,
        )
        self._hurry = asyncio.Event()
        self._drain_begun = asyncio.Event()
        self._watched = contextlib.ExitStack()
        self._draining: asyncio.Task[None] | None = None
        self._retiring: asyncio.Task[None] | None = None
        self._line = EMPTY
        self._exit_code = 0

    async def run(self) -> int:
        """Serve until told to stop; the process's exit code. Raises ``StartError`` when the model can't be loaded."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._begin_drain)
        loop.add_signal_handler(signal.SIGINT, self._begin_drain, True)
        loop.add_signal_handler(signal.SIGHUP, self._retire)
        # The supervisor holds the other end: end of file means that it is gone, however it went.
        loop.add_reader(self._orders.lifeline_fd, self._on_orphaned)
        heart = loop.create_task(self._beat_task())
        listening = socket.socket(fileno=self._orders.socket_fd)
        opening = loop.create_task(self._open())
        if self._orders.load_first:
            await self._opened_or_draining(opening)
        serving = loop.create_task(self._server.serve(sockets=[listening]))
        try:
            await asyncio.wait({serving, opening}, return_when=asyncio.FIRST_COMPLETED)
            if opening.done() and opening.exception() is not None:
                self._server.should_exit = True
            await serving
            if opening.done():
                opening.result()
        finally:
            for task in (opening, heart):
                task.cancel()
            self._watched.close()
            self._board.write(self._orders.slot, EMPTY)
            self._service.engine.close()
        return self._exit_code

    async def _opened_or_draining(self, opening: asyncio.Task[None]) -> None:
        drain = asyncio.get_running_loop().create_task(self._drain_begun.wait())
        await asyncio.wait({opening, drain}, return_when=asyncio.FIRST_COMPLETED)
        drain.cancel()

    async def _open(self) -> None:
        await self._service.open(least=self._orders.least)
        # What start-up made stays for good: the collector need not look at it again, nor pause a query for it.
        gc.collect()
        gc.freeze()
        self._watched.enter_context(collector_pauses(self._service.observe_pause))

    def _begin_drain(self, hurry: bool = False) -> None:
        """The first call starts the drain; a second one, or ``hurry``, skips its delay."""
        if hurry or self._draining is not None:
            self._hurry.set()
        if self._draining is None:
            self._service.begin_drain()
            self._drain_begun.set()
            logger.info("draining")
            self._draining = asyncio.get_running_loop().create_task(self._drain_task())

    def _retire(self) -> None:
        """Another worker takes what comes; this one serves the connections that it has to their own end."""
        if self._draining is None and self._retiring is None:
            logger.info("retiring")
            self._service.begin_retirement()
            self._retiring = asyncio.get_running_loop().create_task(self._retire_task())

    async def _retire_task(self) -> None:
        await self._server.retire()
        self._begin_drain(True)

    async def _drain_task(self) -> None:
        settings = self._orders.settings
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._hurry.wait(), settings.drain_delay_s)
        self._server.should_exit = True
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._service.all_answered.wait(), settings.drain_timeout_s)
        if refused := self._service.engine.pool.refuse_waiting():
            logger.warning("%d queries were still waiting when the drain's time was up", refused)

    def _on_orphaned(self) -> None:
        logger.error("the supervisor is gone; stopping")
        asyncio.get_running_loop().remove_reader(self._orders.lifeline_fd)
        self._begin_drain(True)

    async def _beat_task(self) -> None:
        """Tell the supervisor that this loop turns, and bring the gauges up to date."""
        while True:
            readiness = self._service.readiness()
            state = WorkerState.SERVING if self._service.engine.pool.is_open else WorkerState.LOADING
            if self._service.is_draining:
                state = WorkerState.DRAINING
            replicas, ready = readiness.replicas, readiness.replicas_ready
            connections = self._server.connections if self._server.is_accepting else NOT_ACCEPTING
            out = bits_of(self._service.engine.pool.out)
            self._line = Line(os.getpid(), state, replicas, ready, time.monotonic(), connections, out)
            self._board.write(self._orders.slot, self._line)
            self._service.sample()
            self._start_anew_if_needed()
            await asyncio.sleep(HEARTBEAT_S)

    def _compare_connections(self, own: int) -> int:
        """Tell the other workers how many this one has; the fewest that any has."""
        self._line = self._line._replace(connections=own)
        self._board.write(self._orders.slot, self._line)
        return min(line.connections for line in self._board.read() if line.connections != NOT_ACCEPTING)

    def _start_anew_if_needed(self) -> None:
        """A thread that is gone or stuck in the engine can't be mended in place; a new process can.

        As long as there is somebody to answer what was accepted, it is: the process drains before it ends.
        """
        settings, replicas = self._orders.settings, self._orders.replicas
        pool = self._service.engine.pool
        lost = pool.lost(settings.stall_timeout_s)
        has_too_few = bool(lost) and replicas - lost < max(1.0, settings.quorum * replicas)
        if pool.must_restart or (has_too_few and pool.ready):
            if self._draining is None:
                logger.error("%d of %d replicas are lost; draining, to start anew", lost, replicas)
                self._exit_code = EXIT_REPLICAS_LOST
                self._begin_drain(True)
        elif has_too_few:
            logger.error("%d of %d replicas are lost; starting anew", lost, replicas)
            os._exit(EXIT_REPLICAS_LOST)


def main() -> None:
    orders = Orders.model_validate_json(sys.argv[1])
    settings = orders.settings
    configure_logging(settings.log_level, worker=orders.index, log_queries=settings.log_queries)
    share_by_slot(orders.slot, orders.metrics)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    try:
        code = uvloop.run(Worker(orders).run())
    except StartError as error:
        whose = f"worker {orders.index}: " if orders.workers > 1 else ""
        print(f"query-intent: {whose}{error}", file=sys.stderr)
        # Replica threads may be in the engine still; there is nothing of ours to save.
        os._exit(EXIT_START_FAILED)
    sys.exit(code)


if __name__ == "__main__":
    main()
