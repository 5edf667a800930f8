from __future__ import annotations

from app.tools.simulation.timeline import Timeline


def test_things_happen_in_the_order_of_their_times_and_those_of_one_moment_as_they_were_scheduled() -> None:
    timeline = Timeline()
    happened: list[tuple[float, str]] = []

    def note(now: float, name: str) -> None:
        happened.append((now, name))
        if name == "first":
            timeline.at(1.5, note, "scheduled meanwhile")

    for moment, name in [(2.0, "third"), (1.0, "first"), (2.0, "fourth"), (1.5, "second")]:
        timeline.at(moment, note, name)
    timeline.run()
    assert happened == [
        (1.0, "first"),
        (1.5, "second"),
        (1.5, "scheduled meanwhile"),
        (2.0, "third"),
        (2.0, "fourth"),
    ]
