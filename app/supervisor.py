"""The supervisor: starts the workers, replaces one that dies or stalls, and all when another bundle is asked for;
drains them, and answers for the whole.

Health and metrics on the operations port come from the status board and the workers' metric files, so they are answered
however busy the workers are.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import time
from pathlib import Path

from app.child import Child
from app.cloudwatch import Reporter
from app.cpu_throttling import CpuThrottling
from app.emf import parse_dimensions
from app.fleet import LOOK_S, Fleet
from app.health import Readiness, ReadinessRule
from app.listening import listen, url
from app.metrics import render_shared
from app.neuron_metrics import NeuronMetrics
from app.neuron_monitor import NeuronMonitor
from app.neuron_sdk import SDKS
from app.operations import OperationsServer
from app.orders import EXIT_START_FAILED
from app.own_folders import disk, own_folder, shared_memory
from app.placement import Placement, place
from app.releases import Release, Releases
from app.settings import EMF_OFF, Settings
from app.start_times import StartTimes
from app.swap import Swap
from app.swap_requests import SwapRequests

logger = logging.getLogger(__name__)

STDIN = 0  # the terminal, where one was there at the start


class Supervisor:
    """Runs the service that ``settings`` describe until SIGTERM or SIGINT."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._readiness = ReadinessRule(settings.quorum)
        self._start_times = StartTimes()
        self._had_terminal = os.isatty(STDIN)
        self._is_draining = False
        self._was_ready = asyncio.Event()
        self._exit_code = 0

    async def run(self) -> int:
        """Serve; returns the process's exit code. Raises ``StartError`` when that can't be, as when a port is taken."""
        with own_folder(shared_memory()) as folder, own_folder(disk()) as copies:
            self._releases = Releases(copies)
            release = await self._releases.take(self._settings.bundle)
            return await self._run(folder, release, place(self._settings, release.path, os.environ))

    async def _run(self, folder: Path, release: Release, placement: Placement) -> int:
        # Every worker serves the same, whatever "auto" would find in its own slice.
        self._settings = settings = self._settings.model_copy(update={"target": placement.target})
        self._placement = placement
        self._traffic = traffic = listen(settings.host, settings.port, "PORT")
        operations = listen(settings.ops_host, settings.ops_port, "OPS_PORT")
        lifeline_read, lifeline_write = os.pipe()
        self._fleet = fleet = Fleet(
            settings, placement, release, folder=folder, inherited=(traffic.fileno(), lifeline_read)
        )
        swap = Swap(fleet, one_owner=bool(placement.slices), quorum=settings.quorum, patience_s=settings.load_timeout_s)
        requests = SwapRequests(settings.bundle, release, releases=self._releases, fleet=fleet, swap=swap)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_stop, number)
        loop.add_signal_handler(signal.SIGHUP, self._on_hang_up, requests)
        swapping = loop.create_task(self._swap_task(requests))
        neuron = NeuronMetrics()
        monitor = NeuronMonitor(on_record=neuron.observe, on_end=neuron.forget_latest)
        has_cores = settings.target in SDKS
        collectors = [CpuThrottling(), self._start_times, *([neuron] if has_cores else [])]
        server = OperationsServer(operations, readiness=self.readiness, metrics=fleet.metrics, collectors=collectors)
        reporter = Reporter(
            lambda: render_shared(fleet.metrics, collectors),
            _write_out,
            namespace=settings.emf,
            dimensions=parse_dimensions(settings.emf_dimensions),
        )
        try:
            await server.start()
            if has_cores:
                monitor.start()
            if settings.emf != EMF_OFF:
                reporter.start()
            logger.info(
                "starting",
                extra={
                    "traffic": url(traffic),
                    "operations": url(operations),
                    "target": settings.target,
                    "workers": placement.workers,
                    "replicas": placement.replicas,
                    "bundle": release.address,
                    "digest": release.digest,
                },
            )
            for child in fleet.members:
                await fleet.spawn(child)
            await self._watch()
        finally:
            await self._end(swapping)
            await reporter.stop()  # after the last answer, so that it is counted
            await monitor.stop()
            await server.stop()
            os.close(lifeline_write)
        return self._exit_code

    def readiness(self) -> Readiness:
        """Of the whole service."""
        fleet = self._fleet
        return self._readiness.judge(fleet.ready(), fleet.replicas, is_draining=self._is_draining, out=fleet.out())

    async def _watch(self) -> None:
        """Look after the workers until a signal comes or one of them can't be helped."""
        while not self._fleet.stopping.is_set():
            now = time.monotonic()
            for child in list(self._fleet.members):
                if not child.is_leaving and not await self._look_after(child, now):
                    return
            if not self._was_ready.is_set() and self.readiness().is_ready:
                self._was_ready.set()
                start_s = round(now - self._fleet.members[0].started_at, 2)
                self._start_times.note_ready(start_s)
                logger.info("ready", extra={"seconds": start_s})
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._fleet.stopping.wait(), LOOK_S)

    async def _look_after(self, child: Child, now: float) -> bool:
        """Restart a worker that ended, end one that hangs; False when the service must give up."""
        if child.is_running:
            self._fleet.end_if_hanging(child)
            return True
        if child.restart_at is None:
            assert child.process is not None
            code = child.process.returncode
            child.observe(self._fleet.line(child))  # its last word: it may have been ready for a moment only
            self._fleet.forget(child)
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
            await self._fleet.spawn(child)
        return True

    def _on_stop(self, number: signal.Signals) -> None:
        """The first signal drains; a second one, or Ctrl-C, skips the delay."""
        hurry = number is signal.SIGINT or self._fleet.stopping.is_set()
        self._is_draining = True
        self._fleet.stopping.set()
        self._traffic.close()  # the workers hold it open until they stop accepting; nobody should connect after that
        self._fleet.send(signal.SIGINT if hurry else signal.SIGTERM)

    def _on_hang_up(self, requests: SwapRequests) -> None:
        """It asks for another bundle, unless it says that the terminal is gone: then it ends as by Ctrl-C there."""
        if self._had_terminal and not os.isatty(STDIN):
            self._on_stop(signal.SIGINT)
        else:
            requests.ask()

    async def _swap_task(self, requests: SwapRequests) -> None:
        await self._was_ready.wait()  # who asks earlier is heard then
        await requests.run_task()

    async def _end(self, swapping: asyncio.Task[None]) -> None:
        """Wait for the workers to drain, and end what is left after their bound."""
        self._is_draining = True
        if not self._fleet.stopping.is_set():
            self._fleet.stopping.set()
            self._fleet.send(signal.SIGINT)
        swapping.cancel()
        await asyncio.wait({swapping})
        await self._fleet.end()
        logger.info("stopped")


def _write_out(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
