"""The killer: SIGKILL to one of the service's own workers now and then, and whether the service is whole again."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import time
import urllib.error
import urllib.request
from typing import Any

from benchmarks.service import Service

LOOK_S = 0.1
LOSS_S = 2.0  # a connection that breaks within so long of a kill was to that worker


class Chaos:
    """``kills`` has the seconds from the start and to wholeness of each."""

    def __init__(self, service: Service, *, every_s: float, replicas: int, seed: int) -> None:
        self.kills: list[dict[str, float | None]] = []
        self.is_whole = True
        self.whole_since = time.monotonic()
        self._service = service
        self._every_s = every_s
        self._replicas = replicas
        self._random = random.Random(seed)
        self._started = time.monotonic()
        self._killed_at = float("-inf")
        self._victim = 0
        self._processes = len(service.processes())

    def explains_loss(self) -> bool:
        """Whether a connection that broke just now may have been a killed worker's."""
        return time.monotonic() - self._killed_at < LOSS_S

    async def run_task(self, until: float) -> None:
        """Kill at intervals until the monotonic time ``until``, so that the last worker has time to come back."""
        while self._every_s and time.monotonic() + self._every_s < until:
            await asyncio.sleep(self._every_s)
            self._kill()
            while not await asyncio.to_thread(self._look):  # noqa: ASYNC110 - it happens in other processes
                await asyncio.sleep(LOOK_S)
            self.is_whole, self.whole_since = True, time.monotonic()
            self.kills[-1]["whole_after_s"] = round(self.whole_since - self._killed_at, 2)

    def _kill(self) -> None:
        self._victim = self._random.choice(self._service.processes()[1:])
        self.is_whole = False
        self._killed_at = time.monotonic()
        os.kill(self._victim, signal.SIGKILL)
        self.kills.append({"at_s": round(self._killed_at - self._started, 2), "whole_after_s": None})

    def _look(self) -> bool:
        """Whether all replicas are ready: another worker is there, so the dead one's don't count any more."""
        pids = self._service.processes()
        if self._victim in pids or len(pids) < self._processes:
            return False
        try:
            with urllib.request.urlopen(f"{self._service.operations}/readyz", timeout=2) as reply:
                document: dict[str, Any] = json.loads(reply.read())
        except urllib.error.URLError:
            return False
        return bool(document["replicas_ready"] == self._replicas)
