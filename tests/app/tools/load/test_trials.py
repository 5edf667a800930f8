"""A search with runs as its trials, and what it leaves behind."""

from __future__ import annotations

import pytest

from app.tools.load.outcomes import Recording
from app.tools.load.trials import search, summary
from tests.app.tools.load.recordings import recording


def test_the_rate_comes_with_its_trials_and_how_sure_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    seeds: list[int] = []

    def measure(rate: float, seed: int) -> Recording:
        seeds.append(seed)
        return recording([4.0 if rate <= 300 else 40.0] * 100)

    result = search(measure, first_rate=100, slo_p99_ms=10, seed=7)
    found, trials = result["found"], result["trials"]
    assert 300 / 1.05 < found["rate"] <= 300
    assert (found["met"], found["missed"], found["confidence"]) == (4, 0, 0.969)
    assert found["p99_ms_of_each_trial"] == pytest.approx([4] * 4, rel=1e-3)
    assert [trial["rate"] for trial in trials[:2]] == [100, 198]
    assert {trial["outcome"] for trial in trials} == {"met", "missed"}
    assert seeds == [7 + number for number in range(len(trials))]  # no two trials are the same arrivals
    assert len(capsys.readouterr().err.splitlines()) == len(trials)
    assert "met in 4 of 4 trials" in summary(found, 10)


def test_where_nothing_meets_the_objective_it_says_so() -> None:
    found = search(lambda rate, seed: recording([40.0] * 10), first_rate=10, slo_p99_ms=10, seed=0)["found"]
    assert (found["rate"], found["void"]) == (None, False)
    assert summary(found, 10).startswith("NOTHING FOUND: the objective is missed even at ")


def test_a_generator_that_is_late_finds_nothing_and_the_search_is_void() -> None:
    result = search(lambda rate, seed: recording([1.0] * 10, lag_ms=[3] * 10), first_rate=10, slo_p99_ms=10, seed=0)
    assert (result["found"]["rate"], result["found"]["void"]) == (None, True)
    assert [trial["outcome"] for trial in result["trials"]] == ["void"] * 3
    assert summary(result["found"], 10) == "VOID: the generator was late in 3 trials at 10/s"
