"""Each peer is run as suits it best on this machine: its tunings are tried for a few seconds, and the best stays."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers.figures import GOOD_WITHIN_MS, is_hopeless
from benchmarks.peers.servers import TUNINGS, peer
from benchmarks.peers.settings import Tuning
from benchmarks.run import load

NOBODY_MS = 1000.0  # stands for the P99 of a rate that is beyond a tuning: when the generator gives a request up


def choose(
    name: str, rates: Sequence[float], queries: Path, *, duration: float, tunings: Sequence[Tuning] = TUNINGS
) -> tuple[Tuning, dict[str, Any]]:
    """The tuning with the lowest geometric mean of P99 over ``rates``, and each one's P99 at each.

    A mean over low and high rates, as one setting has to do for all of them; geometric, so that a slow rate counts no
    more than a fast one.
    """
    tried = {tuning: _p99_ms(name, tuning, rates, queries, duration) for tuning in tunings}
    means = {tuning: statistics.geometric_mean(found) for tuning, found in tried.items()}
    best = min(means, key=lambda tuning: means[tuning])
    for tuning, found in tried.items():
        print(f"  {name} {tuning}: P99 {found} ms{'  <- taken' if tuning == best else ''}", file=sys.stderr)
    return best, {
        "taken": str(best),
        "rates": list(rates),
        "p99_ms": {str(tuning): found for tuning, found in tried.items()},
    }


def _p99_ms(name: str, tuning: Tuning, rates: Sequence[float], queries: Path, duration: float) -> list[float]:
    found: list[float] = []
    with peer(name, tuning) as running:
        for rate in sorted(rates):
            result = load(running.url, rate, duration, queries, seed=0, slo_p99_ms=GOOD_WITHIN_MS)
            found.append(min(NOBODY_MS, result["latency_ms"]["p99"] or NOBODY_MS))
            if is_hopeless(result):
                break
    return found + [NOBODY_MS] * (len(rates) - len(found))
