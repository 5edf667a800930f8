"""Runs a workload on a deployment in virtual time."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np

from app.batching.latency import LatencyTable
from app.batching.queue import Entry
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
    """One run. ``seed`` decides which worker accepted a connection, who sends on which, and what each row takes."""

    def __init__(
        self,
        deployment: Deployment,
        row_times: RowTimes,
        workload: Workload,
        *,
        seed: int,
        progress: Callable[[int], object] = lambda _arrivals: None,
    ) -> None:
        rng = Random(seed)
        self._slo_s = deployment.slo_s
        replicas = deployment.workers * deployment.replicas
        self._capacity = LatencyTable(row_times.warm_s).tokens_per_second * replicas
        self._workload = workload
        self._progress = progress
        self._timeline = Timeline()
        cores = (
            SharedCores(self._timeline, deployment.shared_cores)
            if deployment.shared_cores is not None
            else OwnCores(self._timeline)
        )
        self._workers = [
            Worker(deployment, row_times, timeline=self._timeline, cores=cores, rng=rng, on_end=self._end)
            for _ in range(deployment.workers)
        ]
        self._connections = Connections(deployment.connections, workers=deployment.workers, rng=rng)
        self.endings = np.zeros(len(workload.at_s), np.int8)
        self.latencies_s = np.zeros(len(workload.at_s))

    def run(self) -> Figures:
        self._timeline.at(self._workload.at_s[0], self._arrive, 0)
        self._timeline.run()
        return summarise(
            self._workload,
            self.endings,
            self.latencies_s,
            self._workers,
            slo_s=self._slo_s,
            capacity=self._capacity,
        )

    def _arrive(self, now: float, number: int) -> None:
        connection, worker = self._connections.take(now)
        self._workers[worker].receive(now, tokens=self._workload.tokens[number], number=number, connection=connection)
        if (following := number + 1) < len(self._workload.at_s):
            self._timeline.at(self._workload.at_s[following], self._arrive, following)
        if following % PROGRESS_EVERY == 0:
            self._progress(PROGRESS_EVERY)

    def _end(self, entry: Entry, at: float, ending: Ending) -> None:
        assert not self.endings[entry.index], "a query ended twice. This is a bug."
        self.endings[entry.index] = ending
        self.latencies_s[entry.index] = at - self._workload.at_s[entry.index]
        self._connections.release(entry.owner, at)
