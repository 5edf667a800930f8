"""The supervisor: spawns the workers, replaces one that dies or stalls, drains them, and answers for the whole.

Health and metrics on the operations port come from the status board and the workers' metric files, so they are answered
however busy the workers are.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path

from app.child import Child
from app.cloudwatch import Reporter
from app.cpu_throttling import CpuThrottling
from app.emf import parse_dimensions
from app.errors import StartError
from app.health import Readiness, ReadinessRule
from app.metrics import forget_live, render_shared
from app.neuron_metrics import NeuronMetrics
from app.neuron_monitor import NEURON_TARGETS, NeuronMonitor
from app.operations import OperationsServer
from app.orders import EXIT_START_FAILED, Orders
from app.placement import place
from app.settings import EMF_OFF, Settings
from app.status_board import EMPTY, StatusBoard, WorkerState

logger = logging.getLogger(__name__)

BACKLOG = 2048
PREFIX = "query-intent-"  # of the folder in shared memory, then the supervisor's pid
WATCH_S = 0.1
# A worker's loop beats four times a second; one that has been silent for so long answers nobody at the moment.
SILENT_S = 2.0
# Past the bound of their own drain, after which workers are killed.
OUTLIVED_S = 5.0


class Supervisor:
    """Runs the service that ``settings`` describe until SIGTERM or SIGINT."""

    def __init__(self, settings: Settings) -> None:
        self._placement = place(settings, os.environ)
        self._workers, self._replicas = self._placement.workers, self._placement.replicas
        # Every worker serves the same, whatever "auto" would find in its own slice.
        self._settings = settings.model_copy(update={"target": self._placement.target})
        limits = {"load_timeout_s": settings.load_timeout_s, "stall_timeout_s": settings.stall_timeout_s}
        self._children = [Child(index, **limits) for index in range(self._workers)]
        _remove_leftovers(Path(_shared_memory() or tempfile.gettempdir()))
        self._directory = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=_shared_memory()))
        self._metrics = self._directory / "metrics"
        self._metrics.mkdir()
        self._board = StatusBoard.create(self._directory / "board", self._workers)
        self._readiness = ReadinessRule(settings.quorum)
        self._is_draining = False
        self._signalled = asyncio.Event()
        self._exit_code = 0

    async def run(self) -> int:
        """Serve; returns the process's exit code. Raises ``StartError`` when a port is taken."""
        try:
            return await self._run()
        finally:
            shutil.rmtree(self._directory, ignore_errors=True)

    async def _run(self) -> int:
        self._traffic = traffic = _listen(self._settings.host, self._settings.port, "PORT")
        operations = _listen(self._settings.ops_host, self._settings.ops_port, "OPS_PORT")
        lifeline_read, self._lifeline_write = os.pipe()
        self._inherited = traffic.fileno(), lifeline_read
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._on_signal, signal.SIGTERM)
        loop.add_signal_handler(signal.SIGINT, self._on_signal, signal.SIGINT)
        neuron = NeuronMetrics()
        monitor = NeuronMonitor(on_record=neuron.observe, on_end=neuron.forget_latest)
        has_cores = self._settings.target in NEURON_TARGETS
        collectors = [CpuThrottling(), neuron] if has_cores else [CpuThrottling()]
        server = OperationsServer(operations, readiness=self.readiness, metrics=self._metrics, collectors=collectors)
        reporter = Reporter(
            lambda: render_shared(self._metrics, collectors),
            _write_out,
            namespace=self._settings.emf,
            dimensions=parse_dimensions(self._settings.emf_dimensions),
        )
        try:
            await server.start()
            if has_cores:
                monitor.start()
            if self._settings.emf != EMF_OFF:
                reporter.start()
            logger.info(
                "starting",
                extra={
                    "traffic": _address(traffic),
                    "operations": _address(operations),
                    "target": self._settings.target,
                    "workers": self._workers,
                    "replicas": self._replicas,
                    "bundle": str(self._settings.bundle),
                },
            )
            for child in self._children:
                await self._spawn(child)
            await self._watch()
        finally:
            await self._end()
            await reporter.stop()  # after the last answer, so that it is counted
            await monitor.stop()
            await server.stop()
            os.close(self._lifeline_write)
        return self._exit_code

    def readiness(self) -> Readiness:
        """Of the whole service: replicas of every worker that shows signs of life."""
        alive_since = time.monotonic() - SILENT_S
        ready = sum(
            line.ready
            for line in self._board.read()
            if line.state in (WorkerState.SERVING, WorkerState.DRAINING) and line.heartbeat > alive_since
        )
        return self._readiness.judge(ready, self._workers * self._replicas, is_draining=self._is_draining)

    async def _spawn(self, child: Child) -> None:
        if self._signalled.is_set():
            return
        socket_fd, lifeline_fd = self._inherited
        orders = Orders(
            settings=self._settings,
            index=child.index,
            workers=self._workers,
            replicas=self._replicas,
            span=self._placement.span,
            # A core that stays broken must not keep a worker from coming back with the others.
            least=self._quorum_of_a_worker() if child.was_ready else None,
            socket_fd=socket_fd,
            lifeline_fd=lifeline_fd,
            # With nobody else to serve, a 503 at once is better than a connection that nobody answers.
            load_first=self.readiness().replicas_ready > 0,
            board=self._directory / "board",
            metrics=self._metrics,
        )
        child.process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "app.worker",
            orders.model_dump_json(),
            pass_fds=(socket_fd, lifeline_fd),
            # A session of its own: Ctrl-C at the terminal reaches the supervisor only, which then drains in order.
            start_new_session=True,
            env=self._placement.environment(child.index, os.environ),
        )
        child.started_at = time.monotonic()
        child.restart_at = None
        if self._signalled.is_set():  # while it was being started, so that it heard nothing of it
            child.process.terminate()
        logger.info("worker started", extra={"index": child.index, "pid": child.process.pid})

    def _quorum_of_a_worker(self) -> int:
        return max(1, math.ceil(self._settings.quorum * self._replicas))

    async def _watch(self) -> None:
        """Look after the workers until a signal comes or one of them can't be helped."""
        announced = False
        while not self._signalled.is_set():
            now = time.monotonic()
            for child in self._children:
                if not await self._look_after(child, now):
                    return
            if not announced and self.readiness().is_ready:
                announced = True
                logger.info("ready", extra={"seconds": round(now - self._children[0].started_at, 2)})
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._signalled.wait(), WATCH_S)

    async def _look_after(self, child: Child, now: float) -> bool:
        """Restart a worker that ended, end one that hangs; False when the service must give up."""
        if child.is_running:
            self._end_if_hanging(child, now)
            return True
        if child.restart_at is None:
            assert child.process is not None
            code = child.process.returncode
            child.observe(
                self._board.read()[child.index]
            )  # it may have been ready since the last look, and not for long
            self._board.write(child.index, EMPTY)
            forget_live(child.index, self._metrics)
            if not child.was_ready:
                self._exit_code = 1
                if code != EXIT_START_FAILED:  # then the worker has said why itself
                    logger.error("worker ended before it was ready", extra={"index": child.index, "code": code})
                return False
            if child.record_death(now):
                self._exit_code = 1
                logger.error("worker is in a crash loop; giving up", extra={"index": child.index, "code": code})
                return False
            child.restart_at = now + child.backoff_s(now)
            logger.error("worker died", extra={"index": child.index, "code": code, "restart_s": child.backoff_s(now)})
        elif now >= child.restart_at:
            await self._spawn(child)
        return True

    def _end_if_hanging(self, child: Child, now: float) -> None:
        assert child.process is not None
        line = self._board.read()[child.index]
        child.observe(line)
        if child.is_hanging(line, now):
            silence_s = round(child.silence_s(line, now), 1)
            logger.error("worker hangs", extra={"index": child.index, "seconds": silence_s})
            child.process.kill()

    def _on_signal(self, number: signal.Signals) -> None:
        """The first signal drains; a second one, or Ctrl-C, skips the delay."""
        hurry = number is signal.SIGINT or self._signalled.is_set()
        self._is_draining = True
        self._signalled.set()
        self._traffic.close()  # the workers hold it open until they stop accepting; nobody should connect after that
        self._signal_workers(signal.SIGINT if hurry else signal.SIGTERM)

    def _signal_workers(self, number: signal.Signals) -> None:
        lines = self._board.read()
        for child in self._children:
            if child.is_running and child.process is not None:
                # One that still imports has nothing to drain, and would end with the traceback of a KeyboardInterrupt.
                is_listening = lines[child.index].pid == child.process.pid
                child.process.send_signal(number if is_listening else signal.SIGTERM)

    async def _end(self) -> None:
        """Wait for the workers to drain, and end what is left after their bound."""
        self._is_draining = True
        if not self._signalled.is_set():
            self._signal_workers(signal.SIGINT)
        running = [child.process for child in self._children if child.is_running and child.process is not None]
        if not running:
            return
        bound = self._settings.drain_delay_s + self._settings.drain_timeout_s + OUTLIVED_S
        waiting = [asyncio.ensure_future(process.wait()) for process in running]
        _, late = await asyncio.wait(waiting, timeout=bound)
        if late:
            logger.error("%d workers outlived the drain; killing them", len(late))
            for process in running:
                if process.returncode is None:
                    process.kill()
            await asyncio.wait(late)
        logger.info("stopped")


def _listen(host: str, port: int, setting: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except socket.gaierror as error:
        listening.close()
        name = setting.replace("PORT", "HOST")
        raise StartError(f"QUERY_INTENT_{name}={host}: no such address: {error.strerror}") from None
    except OSError as error:
        listening.close()
        raise StartError(f"QUERY_INTENT_{setting}={port}: can't listen on {host}: {error.strerror}") from None
    listening.listen(BACKLOG)
    listening.setblocking(False)
    return listening


def _write_out(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


def _remove_leftovers(folder: Path) -> None:
    """Folders of supervisors that were killed before they could remove them."""
    for path in folder.glob(f"{PREFIX}*-*"):
        pid = path.name.removeprefix(PREFIX).partition("-")[0]
        if pid.isdigit() and not Path(f"/proc/{pid}").exists():
            shutil.rmtree(path, ignore_errors=True)


def _address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://{host}:{port}"


def _shared_memory() -> str | None:
    """Where files stay in memory: metrics are written on every request. None: the platform's choice."""
    shared = "/dev/shm"
    return shared if os.access(shared, os.W_OK) else None
