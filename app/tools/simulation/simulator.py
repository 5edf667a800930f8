"""Runs a workload on a deployment in virtual time."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
from numpy.typing import NDArray

from app.batching.entry import Entry
from app.batching.latency import LatencyTable
from app.tools.simulation.connections import Connections
from app.tools.simulation.cores import OwnCores, SharedCores
from app.tools.simulation.deployment import Deployment
from app.tools.simulation.figures import Figures, summarise
from app.tools.simulation.row_times import RowTimes
from app.tools.simulation.timeline import Timeline
from app.tools.simulation.worker import Ending, Worker
from app.tools.simulation.workload import Workload

PROGRESS_EVERY = 1000  # arrivals


class Simulation:
    """One run. ``seed`` decides which worker accepted a connection, who sends on which, and what each row takes.

    A client that is refused sends its query again when it was told to, ``retries`` times at most.
    """

    def __init__(
        self,
        deployment: Deployment,
        row_times: RowTimes,
        workload: Workload,
        *,
        seed: int,
        retries: int = 0,
        progress: Callable[[int], object] = lambda _arrivals: None,
    ) -> None:
        rng = Random(seed)
        self._slo_s = deployment.slo_s
        replicas = deployment.workers * deployment.replicas
        self._capacity = LatencyTable(row_times.warm_s).tokens_per_second * replicas
        self._workload = workload
        self._retries = retries
        self._progress = progress
        self._timeline = Timeline()
        cores = (
            SharedCores(self._timeline, deployment.shared_cores)
            if deployment.shared_cores is not None
            else OwnCores(self._timeline)
        )
        self.workers = [
            Worker(deployment, row_times, timeline=self._timeline, cores=cores, rng=rng, on_end=self._end)
            for _ in range(deployment.workers)
        ]
        self._connections = Connections(deployment.connections, workers=deployment.workers, rng=rng)
        self.endings = np.zeros(len(workload.at_s), np.int8)
        self.attempts = np.zeros(len(workload.at_s), np.int64)
        self.sent_s: NDArray[np.float64] = np.array(workload.at_s)  # the last attempt
        self.ended_s = np.zeros(len(workload.at_s))

    @property
    def latencies_s(self) -> NDArray[np.float64]:
        """Of each query's last attempt."""
        latencies_s: NDArray[np.float64] = self.ended_s - self.sent_s
        return latencies_s

    def run(self) -> Figures:
        self._timeline.at(self._workload.at_s[0], self._arrive, 0)
        self._timeline.run()
        return summarise(
            self._workload,
            self.endings,
            self.sent_s,
            self.ended_s,
            self.attempts,
            self.workers,
            slo_s=self._slo_s,
            capacity=self._capacity,
        )

    def _arrive(self, now: float, number: int) -> None:
        self._send(now, number)
        if (following := number + 1) < len(self._workload.at_s):
            self._timeline.at(self._workload.at_s[following], self._arrive, following)
        if following % PROGRESS_EVERY == 0:
            self._progress(PROGRESS_EVERY)

    def _send(self, now: float, number: int) -> None:
        self.attempts[number] += 1
        self.sent_s[number] = now
        connection, worker = self._connections.take(now)
        self.workers[worker].receive(now, tokens=self._workload.tokens[number], number=number, connection=connection)

    def _end(self, entry: Entry, at: float, ending: Ending, retry_after_s: float | None = None) -> None:
        number = entry.index
        assert not self.endings[number], "a query ended twice. This is a bug."
        self._connections.release(entry.owner, at)
        if retry_after_s is not None and self.attempts[number] <= self._retries:
            self._timeline.at(at + retry_after_s, self._send, number)
        else:
            self.endings[number] = ending
            self.ended_s[number] = at
