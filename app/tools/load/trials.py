"""The search for the highest rate, with real runs as its trials."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from app.tools.load.outcomes import Recording
from app.tools.load.report import report
from app.tools.load.search import HOLDS, STEP, TRIALS, BeyondGenerator, Nothing, Outcome, find_rate

RULE = (
    f"double or halve until one rate met the objective and a higher one missed it, bisect until they are {STEP - 1:.0%}"
    f" apart, repeat both: the lower has to meet it in {HOLDS} of at most {TRIALS} trials, and the higher must not"
)
_KEPT = ("offered_rate", "achieved_rate", "statuses", "errors", "latency_ms", "slo", "lag", "generator_cpu_share")


def search(measure: Callable[[float, int], Recording], *, first_rate: float, slo_p99_ms: float, seed: int) -> Any:
    """The JSON members ``found`` and ``trials``; ``found.rate`` is None where nothing was, and ``why`` says the reason.

    ``measure`` runs one trial at a rate with a seed. Each trial is shown on standard error.
    """
    trials: list[dict[str, Any]] = []

    def trial(rate: float) -> Outcome:
        trial_seed = seed + len(trials)
        result = report(measure(rate, trial_seed), slo_p99_ms)
        outcome = _judge(result)
        found = {name: result[name] for name in _KEPT}
        trials.append({"rate": round(rate, 1), "outcome": outcome.value, "seed": trial_seed} | found)
        p99, share = result["latency_ms"]["p99"], result["slo"]["within_share"]
        click.echo(f"{rate:>10,.1f}/s  {outcome.value:<6}  P99 {p99} ms, {share:.2%} in time", err=True)
        return outcome

    found: dict[str, Any] = {"rule": RULE, "rate": None}
    try:
        rate, edge = find_rate(first_rate, trial)
    except Nothing as error:
        found |= {"why": str(error), "void": isinstance(error, BeyondGenerator)}
    else:
        at_edge = [each["latency_ms"]["p99"] for each in trials if each["rate"] == round(rate, 1)]
        found |= {"rate": round(rate, 1), "confidence": round(edge.confidence, 3), "void": False}
        found |= {"met": edge.met, "missed": edge.missed, "p99_ms_of_each_trial": at_edge}
    return {"found": found, "trials": trials}


def summary(found: dict[str, Any], slo_p99_ms: float) -> str:
    """The line for a person."""
    if found["rate"] is None:
        return f"{'VOID' if found['void'] else 'NOTHING FOUND'}: {found['why']}"
    of = found["met"] + found["missed"]
    return (
        f"{found['rate']:,}/s with P99 ≤ {slo_p99_ms:g} ms: met in {found['met']} of {of} trials, "
        f"confidence {found['confidence']:.0%} that it is met more often than not"
    )


def _judge(result: dict[str, Any]) -> Outcome:
    if result["lag"]["void"]:
        return Outcome.VOID
    return Outcome.MET if result["slo"]["met"] else Outcome.MISSED
