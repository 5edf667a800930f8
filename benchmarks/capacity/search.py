"""The highest rate at which a deployment answers 99 % of the queries within the objective, in virtual time."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from app.settings import Settings
from app.tools.simulation.deployment import Deployment
from app.tools.simulation.figures import Figures
from app.tools.simulation.lengths import LogNormal
from app.tools.simulation.row_times import RowTimes
from app.tools.simulation.simulator import Simulation
from app.tools.simulation.table import SLO_SHARE
from app.tools.simulation.workload import Traffic
from benchmarks.capacity.chips import Edge, Encoder, Instance, row_seconds

SLO_S = 0.010
TIMEOUT_S = 0.100
CONNECTIONS = 512
QUERY_TOKENS = 9  # on average, and 22 at the 99th percentile: product queries
LENGTHS = LogNormal(QUERY_TOKENS, 22)
QUERIES, LEAST_S = 20_000, 0.5  # of each simulation, whichever is longer
HALVINGS = 8  # of the span from nothing to what no queue could hold


@dataclass(frozen=True, slots=True)
class Host:
    """What a request, and a row beside its requests, cost the worker's event loop, in seconds."""

    request_s: float
    row_s: float

    def slower(self, times: float) -> Host:
        return Host(self.request_s * times, self.row_s * times)


@dataclass(frozen=True, slots=True)
class Service:
    """One instance that serves ``encoder`` in rows of ``tokens``; ``packed``, or with one padded query in each."""

    instance: Instance
    encoder: Encoder
    tokens: int
    packed: bool
    edge: Edge
    host: Host

    @property
    def row_s(self) -> float:
        return row_seconds(self.instance.chip, self.encoder, self.tokens, self.edge)

    def simulate(self, rate: float, workers: int, *, seed: int = 0) -> Figures:
        deployment = Deployment(
            workers=workers,
            replicas=self.instance.cores // workers,
            shared_cores=None,
            connections=CONNECTIONS,
            request_s=self.host.request_s,
            row_s=self.host.row_s,
            slo_s=SLO_S,
            timeout_s=TIMEOUT_S,
            queue_tokens=Settings.model_fields["queue_tokens"].default,
        )
        row_times = RowTimes({self.tokens: self.row_s}, {}, self.tokens, one_query_a_row=not self.packed)
        workload = Traffic("poisson", None, LENGTHS, max(QUERIES, int(LEAST_S * rate)), seed).workload(rate)
        return Simulation(deployment, row_times, workload, seed=seed).run()

    def ceiling(self, workers: int) -> float:
        """Queries a second that full rows, or event loops that never rest, could answer if nobody minded waiting."""
        queries_a_row = self.tokens / QUERY_TOKENS if self.packed else 1
        return min(self.instance.cores / self.row_s * queries_a_row, workers / self.host.request_s)


@dataclass(frozen=True, slots=True)
class Capacity:
    """``held`` is what the simulation says at ``rate``, the highest that holds; None where no rate does."""

    rate: float
    workers: int
    held: Figures | None


def capacity(service: Service) -> Capacity:
    """With the number of workers that holds the most, the smaller of two that hold the same."""
    return max((_capacity(service, workers) for workers in service.instance.workers), key=lambda each: each.rate)


def _capacity(service: Service, workers: int) -> Capacity:
    simulate = cache(lambda rate: service.simulate(rate, workers))
    rate = highest(lambda rate: simulate(rate).within_slo_share >= SLO_SHARE, service.ceiling(workers))
    return Capacity(round(rate), workers, simulate(rate) if rate else None)


def highest(holds: Callable[[float], bool], ceiling: float) -> float:
    """The highest rate up to ``ceiling`` that ``holds``, as far as halving tells; 0 when none is found."""
    low, high = 0.0, ceiling
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def instances_for(rate: float, each: Capacity) -> int | None:
    """How many hold ``rate`` together, none to spare; None where no number does."""
    return math.ceil(rate / each.rate) if each.rate else None


def dollars_per_million(rate: float, instances: int, instance: Instance) -> float:
    return instances * instance.dollars / (rate * 3600) * 1e6
