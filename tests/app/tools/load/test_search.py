"""The search finds the edge through noise, and says how sure it is."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable

import pytest

from app.tools.load.search import (
    DOUBLE,
    STEP,
    TRIALS,
    VOIDS,
    BeyondGenerator,
    Found,
    Nothing,
    Outcome,
    find_rate,
    next_rung,
)

MET, MISSED, VOID = Outcome.MET, Outcome.MISSED, Outcome.VOID


def server(capacity: float, tried: list[float]) -> Callable[[float], Outcome]:
    """Meets the objective up to its capacity, always."""

    def trial(rate: float) -> Outcome:
        tried.append(rate)
        return MET if rate <= capacity else MISSED

    return trial


@pytest.mark.parametrize("capacity", [3, 99, 100, 101, 437, 12_345])
def test_the_rate_is_found_to_within_a_step(capacity: float) -> None:
    tried: list[float] = []
    rate, found = find_rate(100, server(capacity, tried))
    assert capacity / STEP < rate <= capacity
    assert (found.met, found.missed) == (4, 0)
    assert len(tried) < 30


def test_it_brackets_by_doubling_then_bisects_then_repeats_both_sides_of_the_edge() -> None:
    tried: list[float] = []
    rate, _ = find_rate(100, server(300, tried))
    assert [round(each) for each in tried[:3]] == [100, 198, 392]
    assert tried[-4:-1] == [rate] * 3  # the fourth was the bisection's
    assert tried[-1] == pytest.approx(rate * STEP)


def test_noise_at_the_edge_moves_the_rate_by_little() -> None:
    for seed in range(50):
        dice = random.Random(seed)

        def trial(rate: float, dice: random.Random = dice) -> Outcome:
            chance = 1 / (1 + (rate / 400) ** 30)  # 98 % at 350/s, a half at 400/s, 3 % at 450/s
            return MET if dice.random() < chance else MISSED

        rate, found = find_rate(100, trial)
        assert 320 < rate < 440
        assert found.met >= 4


def test_a_single_unlucky_trial_far_below_the_edge_is_found_out() -> None:
    tried: list[float] = []

    def trial(rate: float) -> Outcome:
        tried.append(rate)
        return MET if rate <= 400 and len(tried) != 2 else MISSED

    rate, _ = find_rate(100, trial)
    assert 400 / STEP < rate <= 400


@pytest.mark.parametrize(
    ("trials", "rung"),
    [
        ({}, 0),
        ({0: [MET]}, DOUBLE),
        ({0: [MISSED]}, -DOUBLE),
        ({0: [MET], 14: [MET], 28: [MISSED]}, 21),
        ({0: [MET], 14: [MISSED], 7: [MISSED]}, 3),
        ({0: [VOID]}, 0),
        ({0: [MET], 14: [VOID, VOID]}, 14),
        ({0: [MET], 1: [MISSED]}, 0),  # neighbours: repeat the lower
        ({0: [MET, MISSED, MET, MET], 1: [MISSED]}, 0),
        ({0: [MET] * 4, 1: [MISSED]}, 1),  # it holds: repeat the higher
        ({0: [MET] * 4, 1: [MISSED, MET]}, 1),
        ({0: [MET] * 4, 1: [MISSED, MET, MET, MET, MET]}, 1 + DOUBLE),  # the higher holds as well
        ({-7: [MET], 0: [MET, MISSED], 1: [MISSED]}, -4),  # the lower may not hold: look below
    ],
)
def test_the_next_trial_follows_from_those_before(trials: dict[int, list[Outcome]], rung: int) -> None:
    assert next_rung(trials) == rung


def test_it_is_decided_when_the_lower_neighbour_holds_and_the_higher_fails() -> None:
    trials = {0: [MET], 3: [MET, MET, MISSED, MET, MET], 4: [MISSED, MET, MISSED], 14: [MISSED]}
    assert next_rung(trials) == Found(3, met=4, missed=1)


def test_no_rung_is_tried_more_often_than_the_rule_says() -> None:
    for seed in range(30):
        dice = random.Random(seed)
        tried: list[float] = []

        def trial(rate: float, dice: random.Random = dice, tried: list[float] = tried) -> Outcome:
            tried.append(rate)
            return dice.choice([MET, MISSED])

        with contextlib.suppress(Nothing):
            find_rate(100, trial)
        assert max(tried.count(rate) for rate in set(tried)) <= TRIALS


def test_confidence_is_the_chance_that_a_run_meets_the_objective_more_often_than_not() -> None:
    assert Found(0, met=4, missed=0).confidence == pytest.approx(1 - 0.5**5)
    assert Found(0, met=4, missed=1).confidence == pytest.approx(57 / 64)
    assert Found(0, met=1, missed=1).confidence == pytest.approx(0.5)


def test_a_server_that_never_meets_the_objective_has_no_rate() -> None:
    with pytest.raises(Nothing, match=r"missed even at 1\.\d+/s"):
        find_rate(100, lambda rate: MISSED)


def test_a_server_that_always_meets_the_objective_has_no_rate_either() -> None:
    with pytest.raises(Nothing, match=r"met even at [5-9]\d,\d+/s"):
        find_rate(100, lambda rate: MET)


def test_void_trials_are_repeated_and_then_end_the_search() -> None:
    tried: list[float] = []

    def trial(rate: float) -> Outcome:
        tried.append(rate)
        return MET if rate < 150 else VOID

    with pytest.raises(BeyondGenerator, match="late in 3 trials at 198/s"):
        find_rate(100, trial)
    assert len(tried) == 1 + VOIDS
