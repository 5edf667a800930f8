"""How long a start took, and on a new machine since its boot."""

from __future__ import annotations

import pytest

from app.start_times import NEW_MACHINE_S, StartTimes, seconds_since_boot


def samples(times: StartTimes) -> dict[str, float]:
    return {
        each.name.removeprefix("query_intent_"): each.value for family in times.collect() for each in family.samples
    }


def test_before_it_is_ready_there_is_nothing_to_tell() -> None:
    assert samples(StartTimes(since_boot=lambda: 100.0)) == {}


def test_on_a_new_machine_the_boot_counts() -> None:
    times = StartTimes(since_boot=lambda: 190.0)
    times.note_ready(4.5)
    assert samples(times) == {"start_to_ready_seconds": 4.5, "boot_to_ready_seconds": 190.0}


@pytest.mark.parametrize("boot_s", [NEW_MACHINE_S, 8e6, None])
def test_one_that_was_up_before_says_nothing_of_its_boot(boot_s: float | None) -> None:
    """A deploy to it, or a system that does not say."""
    times = StartTimes(since_boot=lambda: boot_s)
    times.note_ready(4.5)
    assert samples(times) == {"start_to_ready_seconds": 4.5}


def test_the_kernel_knows_when_it_was_booted() -> None:
    first, second = seconds_since_boot(), seconds_since_boot()
    assert first is not None
    assert second is not None
    assert 0 < first <= second
