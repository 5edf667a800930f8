"""The workers' processes: which there are, what each is told, and how one is started, signalled and ended.

A worker has an index, its place among the workers and its cores, for good; and a slot, its line of the status board and
its files of metrics. There are two slots an index, since a worker and its successor may run side by side.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import signal
import sys
import time
from pathlib import Path

from app.child import Child
from app.metrics import forget_live
from app.orders import Orders
from app.placement import Placement
from app.releases import Release
from app.settings import Settings
from app.status_board import EMPTY, Line, StatusBoard, WorkerState

logger = logging.getLogger(__name__)

LOOK_S = 0.1
# A worker's loop beats four times a second; one that has been silent for so long answers nobody at the moment.
SILENT_S = 2.0
# Past the bound of their own end, after which workers are killed.
OUTLIVED_S = 5.0


class Fleet:
    """``folder`` is where board and metrics are. ``inherited`` are the file descriptors that workers get: the listening
    socket, and the pipe whose other end the supervisor holds."""

    def __init__(
        self, settings: Settings, placement: Placement, release: Release, *, folder: Path, inherited: tuple[int, int]
    ) -> None:
        self._settings = settings
        self._placement = placement
        self._inherited = inherited
        self._board_path = folder / "board"
        self._board = StatusBoard.create(self._board_path, 2 * placement.workers)
        self.metrics = folder / "metrics"
        self.metrics.mkdir()
        self.members = [self._child(index, slot=index, release=release) for index in range(placement.workers)]
        self._spawned: list[Child] = []
        self.stopping = asyncio.Event()

    @property
    def replicas(self) -> int:
        """Of the whole service, when all of them run."""
        return self._placement.workers * self._placement.replicas

    def ready(self, *, without: Child | None = None) -> int:
        """Replicas of workers that show signs of life, those of ``without`` not counted."""
        ready = sum(line.ready for slot, line in self._living().items() if without is None or slot != without.slot)
        return min(ready, self.replicas)  # beside their successors there are more for a moment

    def out(self) -> tuple[str, ...]:
        """Who takes no rows, as the metrics name them: ``worker.replica``, or ``worker`` for one that has none left."""
        living = self._living()
        out: list[str] = []
        for index in range(self._placement.workers):
            lines = [living[slot] for slot in self._slots(index) if slot in living and living[slot].ready]
            if lines:
                missing = set.intersection(*(line.replicas_out() for line in lines))
                out += (f"{index}.{replica}" for replica in sorted(missing))
            else:
                out.append(str(index))
        return tuple(out)

    def _living(self) -> dict[int, Line]:
        """By slot, the lines of workers that answer."""
        alive_since = time.monotonic() - SILENT_S
        return {
            slot: line
            for slot, line in enumerate(self._board.read())
            if line.state in (WorkerState.SERVING, WorkerState.DRAINING) and line.heartbeat > alive_since
        }

    def _slots(self, index: int) -> tuple[int, int]:
        """The two that a worker has, one for its successor."""
        return index, index + self._placement.workers

    def line(self, child: Child) -> Line:
        return self._board.read()[child.slot]

    def successor(self, child: Child, release: Release) -> Child:
        """To serve ``release`` in the place of ``child``, in the other slot."""
        workers = self._placement.workers
        new = self._child(child.index, slot=(child.slot + workers) % (2 * workers), release=release)
        # Replicas that stay out for good stay out of the successor too; whoever answers now has to answer then.
        new.least = max(1, self.line(child).ready) if child.is_running else self._quorum_of_a_worker()
        return new

    async def spawn(self, child: Child) -> None:
        if self.stopping.is_set():
            return
        socket_fd, lifeline_fd = self._inherited
        orders = Orders(
            settings=self._settings,
            bundle=child.release.path,
            address=child.release.address,
            index=child.index,
            slot=child.slot,
            workers=self._placement.workers,
            replicas=self._placement.replicas,
            span=self._placement.span,
            # A core that stays broken must not keep a worker from coming back with the others.
            least=self._quorum_of_a_worker() if child.was_ready else child.least,
            socket_fd=socket_fd,
            lifeline_fd=lifeline_fd,
            # With nobody else to serve, a 503 at once is better than a connection that nobody answers.
            load_first=self.ready() > 0,
            board=self._board_path,
            metrics=self.metrics,
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
        self._spawned = [other for other in self._spawned if other.is_running and other is not child] + [child]
        if self.stopping.is_set() or child.is_leaving:  # since it was being started, so that it heard nothing of it
            child.process.terminate()
        logger.info("worker started", extra={"index": child.index, "pid": child.process.pid})

    async def start(self, child: Child) -> str:
        """Spawn it and wait until it serves; why it doesn't, if so."""
        await self.spawn(child)
        while child.is_running and not self.stopping.is_set():
            line = self.line(child)
            child.observe(line)
            if child.is_up(line) and line.ready:
                return ""
            self.end_if_hanging(child)
            await asyncio.sleep(LOOK_S)
        if self.stopping.is_set():
            return "the service is stopping"
        assert child.process is not None
        self.forget(child)
        return f"worker {child.index} ended with exit code {child.process.returncode} before it was ready"

    async def retire(self, child: Child) -> None:
        """Let it serve the connections that it has, and no new ones, to their end; wait for its own."""
        child.is_leaving = True
        if child.is_running and child.process is not None:
            child.process.send_signal(signal.SIGHUP)
            # Its last connection ends once it has been idle for so long, or has sent a request and got its answer.
            settings = self._settings
            bound_s = settings.keep_alive_s + settings.read_timeout_s + settings.drain_timeout_s + OUTLIVED_S
            await self.wait_or_kill([child], bound_s)
        self.forget(child)

    def end_if_hanging(self, child: Child) -> None:
        assert child.process is not None
        now, line = time.monotonic(), self.line(child)
        child.observe(line)
        if child.is_hanging(line, now):
            silence_s = round(child.silence_s(line, now), 1)
            logger.error("worker hangs", extra={"index": child.index, "seconds": silence_s})
            child.process.kill()

    def forget(self, child: Child) -> None:
        """What only a living process can say."""
        self._board.write(child.slot, EMPTY)
        forget_live(child.slot, self.metrics)

    def send(self, number: signal.Signals) -> None:
        """To every process: those that serve, load and leave."""
        for child in self._running():
            # One that still imports has nothing to drain, and would end with the traceback of a KeyboardInterrupt.
            assert child.process is not None
            is_listening = self.line(child).pid == child.process.pid
            child.process.send_signal(number if is_listening else signal.SIGTERM)

    async def end(self) -> None:
        """Wait for all to drain, and end what is left after their bound."""
        settings = self._settings
        bound_s = settings.drain_delay_s + settings.drain_timeout_s + OUTLIVED_S
        await self.wait_or_kill(self._running(), bound_s)

    @staticmethod
    async def wait_or_kill(children: list[Child], bound_s: float) -> None:
        processes = [child.process for child in children if child.process is not None]
        if not processes:
            return
        _, late = await asyncio.wait([asyncio.ensure_future(each.wait()) for each in processes], timeout=bound_s)
        if late:
            logger.error("%d workers outlived the drain; killing them", len(late))
            for process in processes:
                if process.returncode is None:
                    process.kill()
            await asyncio.wait(late)

    def _child(self, index: int, *, slot: int, release: Release) -> Child:
        settings = self._settings
        return Child(
            index,
            slot=slot,
            release=release,
            load_timeout_s=settings.load_timeout_s,
            stall_timeout_s=settings.stall_timeout_s,
        )

    def _running(self) -> list[Child]:
        return [child for child in self._spawned if child.is_running]

    def _quorum_of_a_worker(self) -> int:
        return max(1, math.ceil(self._settings.quorum * self._placement.replicas))
