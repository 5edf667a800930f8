"""When a service is ready."""

from __future__ import annotations

import pytest

from app.health import Readiness, ReadinessRule


def served(rule: ReadinessRule, replicas: int) -> ReadinessRule:
    assert rule.judge(replicas, replicas, is_draining=False).is_ready
    return rule


@pytest.mark.parametrize("ready", [0, 1, 3])
def test_at_first_all_replicas_must_be_warm_whatever_the_quorum(ready: int) -> None:
    readiness = ReadinessRule(0.0).judge(ready, 4, is_draining=False)
    assert not readiness.is_ready
    assert readiness == Readiness(ready, 4, f"loading: {ready} of 4 replicas are warm")


def test_with_all_warm_it_is_ready_for_no_reason() -> None:
    assert ReadinessRule(0.5).judge(4, 4, is_draining=False) == Readiness(4, 4, "")


def test_a_service_of_no_replicas_is_never_ready() -> None:
    assert not ReadinessRule(0.0).judge(0, 0, is_draining=False).is_ready


@pytest.mark.parametrize(("ready", "is_ready"), [(0, False), (1, False), (2, True), (3, True)])
def test_later_it_is_ready_down_to_the_quorum(ready: int, is_ready: bool) -> None:
    readiness = served(ReadinessRule(0.5), 4).judge(ready, 4, is_draining=False)
    assert readiness.is_ready is is_ready
    if not is_ready:
        assert readiness.reason == f"degraded: {ready} of 4 replicas are ready, the quorum is 0.5"


def test_without_any_replica_it_is_not_ready_even_at_a_quorum_of_nothing() -> None:
    rule = served(ReadinessRule(0.0), 4)
    assert not rule.judge(0, 4, is_draining=False).is_ready
    assert rule.judge(1, 4, is_draining=False).is_ready


@pytest.mark.parametrize(("quorum", "ready", "replicas"), [(0.55, 11, 20), (0.07, 7, 100), (0.28, 7, 25), (1.0, 3, 3)])
def test_exactly_the_quorum_is_enough(quorum: float, ready: int, replicas: int) -> None:
    rule = served(ReadinessRule(quorum), replicas)
    assert rule.judge(ready, replicas, is_draining=False).is_ready
    assert not rule.judge(ready - 1, replicas, is_draining=False).is_ready


def test_a_replica_that_comes_back_is_counted_again() -> None:
    rule = served(ReadinessRule(1.0), 2)
    assert not rule.judge(1, 2, is_draining=False).is_ready
    assert rule.judge(2, 2, is_draining=False).is_ready


def test_who_is_out_is_named_once_all_were_warm() -> None:
    rule = ReadinessRule(0.5)
    assert rule.judge(0, 4, is_draining=False, out=("0", "1")).out == ()
    assert served(rule, 4).judge(3, 4, is_draining=False, out=("1.1",)).out == ("1.1",)


def test_while_it_drains_it_is_not_ready_however_well_it_is() -> None:
    readiness = served(ReadinessRule(0.5), 2).judge(2, 2, is_draining=True)
    assert readiness == Readiness(2, 2, "draining: the service is stopping")


def test_a_successor_need_not_have_been_complete() -> None:
    rule = ReadinessRule(0.5)
    assert not rule.judge(3, 4, is_draining=False).is_ready
    rule.accept_what_is_there()
    assert rule.judge(3, 4, is_draining=False).is_ready
    assert not rule.judge(1, 4, is_draining=False).is_ready
