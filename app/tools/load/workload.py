"""From what was asked on the command line to a plan and the bytes of its requests."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from app.tools.arrivals import BURST_FACTOR, Law, Span
from app.tools.load.plan import Plan, plan_steps, plan_trace
from app.tools.load.queries import OWN_QUERIES, first_distinct, in_turn, make_up, read_queries, zipf
from app.tools.load.target import Body, Target
from app.tools.traces import Trace, read_trace

DEFAULT_DURATION_S = 10.0
FIRST_RATE = 100.0  # of a search


@dataclass(frozen=True, slots=True)
class Asked:
    """The options as given; None is one that wasn't."""

    url: str
    body: str
    rate: float | None
    steps: tuple[float, ...] | None
    replay: Path | None
    find_rate: bool
    arrivals: Law | None
    burst_factor: float | None
    duration: float | None
    warmup: float
    queries: Path | None
    column: str | None
    zipf_s: float | None
    distinct: int | None
    seed: int
    connections: int
    timeout_ms: int
    slo_p99_ms: float | None

    def __post_init__(self) -> None:
        """Raises ``click.UsageError`` for options that contradict one another, rather than to ignore one of them."""
        given = [name for name in ("rate", "steps", "replay") if getattr(self, name) is not None]
        is_search_of_more = self.find_rate and given not in ([], ["rate"])
        checks = (
            (len(given) != 1 and not self.find_rate, "give one of --rate, --steps, --replay and --find-rate"),
            (is_search_of_more, "--find-rate starts at --rate and goes with neither --steps nor --replay"),
            (self.find_rate and self.slo_p99_ms is None, "--find-rate needs --slo-p99-ms"),
            (self.replay and self.arrivals, "--arrivals is how --rate and --steps are spread; --replay has its own"),
            (self.burst_factor is not None and self.law != "bursty", "--burst-factor is for --arrivals bursty"),
            (self.column and not (self.queries or self.replay), "--column is for --queries and --replay"),
        )
        for is_wrong, reason in checks:
            if is_wrong:
                raise click.UsageError(reason)

    @property
    def recorded(self) -> dict[str, Any]:
        """What a result has to say about how it came about."""
        found = {"arrivals": "replayed" if self.replay else self.law, "warmup_s": self.warmup}
        if self.law == "bursty":
            found["burst_factor"] = self.bursts
        names = ("url", "body", "rate", "replay", "queries", "zipf_s", "distinct", "seed", "connections", "timeout_ms")
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return found | {name: str(value) if isinstance(value, Path) else value for name, value in given.items()}

    @property
    def law(self) -> Law:
        return self.arrivals or "poisson"

    @property
    def bursts(self) -> float:
        """How many times the average rate a burst has."""
        return self.burst_factor or BURST_FACTOR

    @property
    def duration_s(self) -> float:
        return self.duration or DEFAULT_DURATION_S


class Workload:
    """What is sent where, read and resolved once. Raises ``click.UsageError`` for files and URLs that don't do."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        with _blamed_on("--url"):
            self.target = Target.parse(asked.url)
        with _blamed_on("--body"):
            self._body = Body(asked.body)
        self._trace: Trace | None = None
        if asked.replay:
            with _blamed_on("--replay"):
                column = None if asked.queries else asked.column
                self._trace = read_trace(asked.replay, column, until_s=asked.duration)
        # A trace brings its own queries, unless others were asked for.
        are_others_asked = asked.queries or asked.zipf_s is not None or asked.distinct is not None
        self._trace_queries = self._trace.queries if self._trace and not are_others_asked else None
        with _blamed_on("--queries" if asked.queries else "--distinct"):
            self._texts = self._trace_queries or self._read_texts()

    def plan(self, rate: float | None, *, seed: int) -> Plan:
        """At ``rate``, or as the steps or the trace say where it is None."""
        asked = self.asked
        with _blamed_on("--duration"):
            if self._trace:
                return plan_trace(self._trace, warmup_s=asked.warmup, seed=seed)
            rates = (rate,) if rate is not None else asked.steps or ()
            return plan_steps(
                asked.law,
                [Span(asked.duration_s / len(rates), rate) for rate in rates],
                warmup_s=asked.warmup,
                seed=seed,
                burst_factor=asked.bursts,
            )

    def requests(self, plan: Plan, *, seed: int) -> list[bytes]:
        """What goes over the wire, by number; equal requests are one object."""
        distinct, count = len(self._texts), len(plan)
        if self.asked.zipf_s is not None:
            choice = zipf(distinct, self.asked.zipf_s, count, seed=seed)
        elif self._trace_queries:
            choice = (np.arange(count) - plan.first_recorded) % distinct
        else:
            choice = in_turn(distinct, count, seed=seed)
        used, places = np.unique(choice, return_inverse=True)
        encoded = [self.target.encode(self._body.fill(self._texts[place])) for place in used]
        return [encoded[place] for place in places.tolist()]

    def _read_texts(self) -> list[str]:
        asked = self.asked
        if asked.queries:
            texts = read_queries(asked.queries, asked.column)
            return first_distinct(texts, asked.distinct) if asked.distinct else texts
        return make_up(asked.distinct) if asked.distinct else list(OWN_QUERIES)


@contextlib.contextmanager
def _blamed_on(option: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, OSError) as error:
        raise click.BadParameter(str(error), param_hint=option) from error
