"""The highest rate that meets an objective, found by trials that may each come out wrong.

Rates are the rungs of a ladder, STEP apart. The rule, in full:

1. Bracket: from the first rate, go up by doubling while trials meet the objective, or down by halving while they miss
   it, until one rung has met and a higher one has missed.
2. Bisect between the two until they are neighbours.
3. Repeat at the edge, the lower rung first: a rung *holds* once HOLDS of its at most TRIALS trials have met the
   objective and *fails* once that is out of reach. One that fails moves the edge down, one that holds moves it up.
4. Done when the lower of two neighbours holds and the higher fails: the lower one is the rate.

A void trial says nothing and is repeated; a rung with VOIDS of them is beyond this generator, and nothing is found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

STEP = 1.05
DOUBLE = 14  # rungs: 1.05 ** 14 = 1.98
TRIALS = 5
HOLDS = 4
VOIDS = 3
LOWEST_RATE = 1.0
HIGHEST_RATE = 100_000.0


class Outcome(Enum):
    MET = "met"
    MISSED = "missed"
    VOID = "void"


class Nothing(Exception):
    """No rate can be named; the message says why."""


class BeyondGenerator(Nothing):
    """The generator could not send at the rate that had to be tried."""


Trials = Mapping[int, Sequence[Outcome]]  # of each rung that was tried


@dataclass(frozen=True, slots=True)
class Found:
    rung: int
    met: int  # trials at that rung
    missed: int

    @property
    def confidence(self) -> float:
        """How likely it is that a trial at this rate meets the objective more often than not, given these trials.

        The posterior P(p > 1/2) with a uniform prior on p, Beta(met + 1, missed + 1), which is a sum of binomials: 0.97
        after 4 of 4, 0.89 after 4 of 5.
        """
        tosses = self.met + self.missed + 1
        return float(sum(math.comb(tosses, heads) for heads in range(self.met + 1)) / 2**tosses)


def find_rate(first_rate: float, trial: Callable[[float], Outcome]) -> tuple[float, Found]:
    """Run ``trial`` at one rate after the other. Raises ``Nothing`` when no rate meets the objective or all do."""
    trials: dict[int, list[Outcome]] = {}
    while not isinstance(decided := next_rung(trials), Found):
        rate = first_rate * STEP**decided
        if rate < LOWEST_RATE:
            raise Nothing(f"the objective is missed even at {first_rate * STEP ** min(trials):.3g}/s")
        if rate > HIGHEST_RATE:
            raise Nothing(f"the objective is met even at {first_rate * STEP ** max(trials):,.0f}/s")
        outcomes = trials.setdefault(decided, [])
        outcomes.append(trial(rate))
        if outcomes.count(Outcome.VOID) == VOIDS:
            raise BeyondGenerator(f"the generator was late in {VOIDS} trials at {rate:,.0f}/s")
    return first_rate * STEP**decided.rung, decided


def next_rung(trials: Trials) -> int | Found:
    """Where to try next, or the answer; the rule of this module as a pure function of what the trials said."""
    void_only = [rung for rung, outcomes in trials.items() if set(outcomes) == {Outcome.VOID}]
    if void_only:
        return void_only[0]
    if not trials:
        return 0
    failing = [rung for rung, outcomes in trials.items() if not _seems_met(outcomes)]
    if not failing:
        return max(trials) + DOUBLE
    upper = min(failing)
    below = [rung for rung in trials if rung < upper]
    if not below:
        return upper - DOUBLE
    lower = max(below)
    if upper - lower > 1:
        return (lower + upper) // 2
    if not _is_settled(trials[lower]):
        return lower
    if not _is_settled(trials[upper]):
        return upper
    return Found(lower, trials[lower].count(Outcome.MET), trials[lower].count(Outcome.MISSED))


def _seems_met(outcomes: Sequence[Outcome]) -> bool:
    """What a settled rung is, and until then what most of its trials say; a tie is for the repetition to break."""
    met, missed = outcomes.count(Outcome.MET), outcomes.count(Outcome.MISSED)
    return met >= HOLDS or (missed <= TRIALS - HOLDS and met > missed)


def _is_settled(outcomes: Sequence[Outcome]) -> bool:
    return outcomes.count(Outcome.MET) >= HOLDS or outcomes.count(Outcome.MISSED) > TRIALS - HOLDS
