"""From runs to figures: medians at each rate, the highest rate that meets an objective, and how far we are ahead."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

OBJECTIVES_MS = (10, 25)
# An answer counts for goodput when it comes within the deadline that our service has by default.
GOOD_WITHIN_MS = 100
# P99 is of those who got an answer, so hardly anybody may be refused for it.
MAX_FAILED_SHARE = 0.001
# With fewer in time than that, more load says nothing new.
HOPELESS_SHARE = 0.5

Run = Mapping[str, Any]  # the JSON of ``query-intent load``
Figures = dict[str, Any]


def is_hopeless(run: Run) -> bool:
    return bool(run["slo"]["within_share"] < HOPELESS_SHARE)


def summarise(runs: Sequence[Run]) -> Figures:
    """Medians over the rounds of one rate but for the void ones, and what should be zero added up.

    Where most of the rounds are void there are no latencies (None): the generator couldn't keep the schedule.
    """
    valid = [run for run in runs if not run["lag"]["void"]]
    judged = valid if 2 * len(valid) > len(runs) else []

    def median(values: Sequence[float | None]) -> float | None:
        """Nobody answered is worse than any time."""
        known = [float("inf") if value is None else value for value in values]
        middle = statistics.median(known) if known else float("inf")
        return None if middle == float("inf") else round(middle, 3)

    latency = {name: median([run["latency_ms"][name] for run in judged]) for name in ("p50", "p90", "p99", "p99_9")}
    return {
        **{f"{name}_ms": value for name, value in latency.items()},
        "p99_ms_of_each_round": [run["latency_ms"]["p99"] for run in runs],
        "goodput": median([run["slo"]["goodput"] for run in judged]),
        "scheduled": sum(run["scheduled"] for run in runs),
        "not_200": sum(run["scheduled"] - run["statuses"].get("200", 0) for run in runs),
        "errors": _added_up([run["statuses"] | run["errors"] for run in runs]),
        "generator_cpu_share": median([run["generator_cpu_share"] for run in runs]),
        "void_rounds": len(runs) - len(valid),
    }


def _added_up(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    names = sorted({name for each in counts for name in each} - {"200"})
    return {name: sum(each.get(name, 0) for each in counts) for name in names}


def highest_rate(rates: Mapping[float, Figures], objective_ms: float) -> dict[str, float | None]:
    """``held``: the highest rate up to which every one met the objective; ``missed``: the next that was judged, if any.

    A rate that isn't judged, for its rounds were void, is passed over: it is neither, and the next one up tells more.
    """
    held: float | None = None
    for rate, figures in sorted(rates.items()):
        is_judged = 2 * figures["void_rounds"] < len(figures["p99_ms_of_each_round"])
        if not is_judged:
            continue
        p99_ms = figures["p99_ms"]
        if p99_ms is None or p99_ms > objective_ms or figures["not_200"] > MAX_FAILED_SHARE * figures["scheduled"]:
            return {"held": held, "missed": rate}
        held = rate
    return {"held": held, "missed": None}


def compare(servers: Mapping[str, Mapping[float, Figures]], ours: str) -> dict[str, Any]:
    """For each objective: everyone's highest rate, and ours as a multiple of the best peer's.

    ``times_best_peer_at_least`` takes for the peer the rate that it missed, since the truth lies between the two.
    """
    found: dict[str, Any] = {}
    for objective_ms in OBJECTIVES_MS:
        highest = {name: highest_rate(rates, objective_ms) for name, rates in servers.items()}
        own = highest[ours]["held"]
        peers = [each for name, each in highest.items() if name != ours]
        found[f"p99_within_{objective_ms}_ms"] = {
            "highest_rate": highest,
            "times_best_peer": _times(own, [each["held"] or 0 for each in peers]),
            "times_best_peer_at_least": _times(own, [each["missed"] for each in peers]),
        }
    return found


def _times(own: float | None, rates: Sequence[float | None]) -> float | None:
    """``own`` over the largest of ``rates``; None where one of them isn't known."""
    known = [rate for rate in rates if rate is not None]
    if own is None or len(known) < len(rates) or not any(known):
        return None
    return round(own / max(known), 2)


def peak_goodput(rates: Mapping[float, Figures]) -> float:
    """Answers a second in time, at the rate where there are most."""
    return max((figures["goodput"] or 0.0 for figures in rates.values()), default=0.0)
