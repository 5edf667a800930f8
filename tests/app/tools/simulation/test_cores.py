"""The cores of the simulation: who gets how much of them, and when what runs there ends."""

from __future__ import annotations

import pytest

from app.tools.simulation.cores import EventLoop, OwnCores, SharedCores
from app.tools.simulation.timeline import Timeline


class Ended:
    """When each row ended, by its name."""

    def __init__(self) -> None:
        self.at: dict[str, float] = {}

    def __call__(self, now: float, name: str) -> None:
        assert name not in self.at
        self.at[name] = now


@pytest.fixture
def timeline() -> Timeline:
    return Timeline()


@pytest.fixture
def ended() -> Ended:
    return Ended()


class TestOwnCores:
    def test_each_row_has_one_and_loops_take_nothing_of_it(self, timeline: Timeline, ended: Ended) -> None:
        cores = OwnCores(timeline)
        for number in range(20):
            cores.run_row(0.0, 3.0, ended, str(number))
        EventLoop(cores).spend(0.0, 1.0)
        timeline.run()
        assert list(ended.at.values()) == [3.0] * 20


class TestSharedCores:
    @pytest.mark.parametrize(("count", "each"), [(1, 6.0), (2, 3.0), (3, 2.0), (4, 2.0)])
    def test_rows_have_equal_parts_and_none_more_than_a_core(
        self, timeline: Timeline, ended: Ended, count: int, each: float
    ) -> None:
        cores = SharedCores(timeline, count)
        for name in "abc":
            cores.run_row(0.0, 2.0, ended, name)
        timeline.run()
        assert ended.at == pytest.approx({"a": each, "b": each, "c": each})

    def test_a_row_that_joins_slows_the_others_from_then_on(self, timeline: Timeline, ended: Ended) -> None:
        cores = SharedCores(timeline, 1)
        cores.run_row(0.0, 2.0, ended, "first")
        timeline.at(1.0, lambda now, name: cores.run_row(now, 3.0, ended, name), "second")
        timeline.run()
        # The first is half done when the second comes, and gets half a core for the rest: 1 + 2. The second has one of
        # its three seconds by then, and the core for itself afterwards.
        assert ended.at == pytest.approx({"first": 3.0, "second": 5.0})

    def test_a_loop_goes_first_and_a_row_has_what_is_left(self, timeline: Timeline, ended: Ended) -> None:
        cores = SharedCores(timeline, 1)
        loop = EventLoop(cores)
        cores.run_row(0.0, 2.0, ended, "row")
        timeline.at(0.5, lambda now, _: loop.spend(now, 0.25), None)
        timeline.run()
        assert ended.at == {"row": 2.25}
        assert loop.busy_until == 0.75

    def test_a_loop_with_a_core_to_spare_disturbs_nobody(self, timeline: Timeline, ended: Ended) -> None:
        cores = SharedCores(timeline, 2)
        cores.run_row(0.0, 2.0, ended, "row")
        timeline.at(0.5, lambda now, _: EventLoop(cores).spend(now, 0.25), None)
        timeline.run()
        assert ended.at == {"row": 2.0}

    def test_two_loops_on_two_cores_leave_rows_nothing(self, timeline: Timeline, ended: Ended) -> None:
        cores = SharedCores(timeline, 2)
        cores.run_row(0.0, 2.0, ended, "row")
        for _ in range(2):
            EventLoop(cores).spend(0.0, 0.5)
        timeline.run()
        assert ended.at == {"row": 2.5}

    def test_what_comes_to_a_busy_loop_keeps_its_core_for_as_much_longer(
        self, timeline: Timeline, ended: Ended
    ) -> None:
        cores = SharedCores(timeline, 1)
        loop = EventLoop(cores)
        cores.run_row(0.0, 2.0, ended, "row")
        for moment in (0.5, 0.6, 0.75):  # the last as the loop is about to sleep
            timeline.at(moment, lambda now, _: loop.spend(now, 0.125), None)
        timeline.run()
        assert loop.busy_until == 0.875
        assert ended.at == {"row": 2.375}


class TestEventLoop:
    def test_it_does_one_thing_after_another(self, timeline: Timeline) -> None:
        loop = EventLoop(OwnCores(timeline))
        assert [loop.spend(now, 1.0) for now in (0.0, 0.5, 5.0)] == [1.0, 2.0, 6.0]
        assert loop.busy_s == 3.0
