"""The rules about a worker's process, on virtual time."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app.child import CRASH_LOOP_DEATHS, RESTART_BACKOFF_S, Child
from app.releases import Release
from app.status_board import EMPTY, Line, WorkerState

PID = 4711
RELEASE = Release("/srv/bundle", "0" * 64, Path("/tmp/copy"))
STARTED_AT = 1000.0


def child() -> Child:
    worker = Child(0, slot=0, release=RELEASE, load_timeout_s=300, stall_timeout_s=10)
    process: Any = SimpleNamespace(pid=PID, returncode=None)
    worker.process = process
    worker.started_at = STARTED_AT
    return worker


def line(state: WorkerState, heartbeat: float, *, pid: int = PID) -> Line:
    return Line(pid, state, 2, 2 * (state is WorkerState.SERVING), heartbeat)


@pytest.mark.parametrize("seconds", [0.1, 15, 299.9])
@pytest.mark.parametrize(
    "says", [EMPTY, line(WorkerState.LOADING, STARTED_AT + 0.1)], ids=["has said nothing yet", "has beaten once"]
)
def test_a_load_that_holds_the_interpreter_is_not_killed(says: Line, seconds: float) -> None:
    """F5: a loop that turns once and then not for 15 s is how loading looks from outside."""
    assert not child().is_hanging(says, STARTED_AT + seconds)


def test_a_load_that_outlasts_its_own_limit_is_killed() -> None:
    assert child().is_hanging(line(WorkerState.LOADING, STARTED_AT + 300.0), STARTED_AT + 300.1)


@pytest.mark.parametrize("state", [WorkerState.SERVING, WorkerState.DRAINING])
@pytest.mark.parametrize(("silent_s", "hangs"), [(0, False), (10.0, False), (10.1, True)])
def test_a_worker_that_was_ready_must_show_signs_of_life(state: WorkerState, silent_s: float, hangs: bool) -> None:
    now = STARTED_AT + 5000

    assert child().is_hanging(line(state, now - silent_s), now) is hangs


def test_what_a_forerunner_left_on_the_board_is_not_taken_for_the_new_workers() -> None:
    """Else a worker would be killed at its start for the silence of the dead."""
    old = line(WorkerState.SERVING, STARTED_AT - 100, pid=PID - 1)
    worker = child()
    worker.observe(old)

    assert not worker.is_hanging(old, STARTED_AT + 50)
    assert not worker.was_ready


def test_a_worker_was_ready_once_it_has_served() -> None:
    worker = child()

    worker.observe(line(WorkerState.LOADING, STARTED_AT + 1))
    assert not worker.was_ready
    worker.observe(line(WorkerState.SERVING, STARTED_AT + 2))
    assert worker.was_ready
    worker.observe(EMPTY)
    assert worker.was_ready


def test_a_worker_that_dies_more_often_waits_longer_for_its_restart() -> None:
    worker = child()
    waits = []
    for death in range(CRASH_LOOP_DEATHS - 1):
        assert not worker.record_death(STARTED_AT + death)
        waits.append(worker.backoff_s(STARTED_AT + death))

    assert waits == list(RESTART_BACKOFF_S[: len(waits)])
    assert worker.backoff_s(STARTED_AT + 3600) == RESTART_BACKOFF_S[0]  # all of that is long ago


@pytest.mark.parametrize(("healthy_s", "is_loop"), [(0.0, True), (60.0, True), (60.1, False)])
def test_six_deaths_without_a_healthy_minute_are_a_crash_loop_however_long_loading_took(
    healthy_s: float, is_loop: bool
) -> None:
    worker = child()
    deaths = []
    for _ in range(6):
        ready_at = worker.started_at + 100
        worker.observe(line(WorkerState.SERVING, ready_at))
        deaths.append(worker.record_death(ready_at + healthy_s))
        worker.started_at = ready_at + healthy_s + 1

    assert deaths == [False] * 5 + [is_loop]
