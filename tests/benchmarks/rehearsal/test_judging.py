"""What a rehearsal has to show."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from benchmarks.rehearsal.judging import judge

PROBE = {"latency_ms": {"p99": 49.9}, "statuses": {200: 100}}
GOOD: dict[str, Any] = {
    "restarts": {"failed": 0},
    "never_ready": {"failed": 0},
    "killed_behind_a_proxy_that_redispatches": {"outcomes": {"200": 900, "502": 3}},
    "swap": {"failed": 0, "results": ["done", "done"], "normal_p99_ms": 8.0, "swap_p99_ms": 16.0},
    "sigterm": {
        "queued": 200,
        "answered": {"200": 120, "503": 80},
        "idle": 50,
        "idle_closed": 50,
        "exit_code": 0,
        "exit_s": 6.0,
        "drain_s": 4.0,
    },
    "overload": {"metrics": PROBE, "readyz": PROBE},
}


def test_every_aim_is_reached_at_its_limit() -> None:
    assert all(judge(GOOD).values())


@pytest.mark.parametrize(
    ("phase", "changes", "missed"),
    [
        ("restarts", {"failed": 1}, "no request fails while instances are restarted"),
        ("never_ready", {"failed": 1}, "no request fails while an instance never becomes ready"),
        (
            "killed_behind_a_proxy_that_redispatches",
            {"outcomes": {"200": 900, "503": 1}},
            "a killed instance costs the requests on its connections only",
        ),
        ("swap", {"failed": 1}, "no request fails while a model is swapped"),
        ("swap", {"results": ["done", "rolled back"]}, "no request fails while a model is swapped"),
        ("swap", {"swap_p99_ms": 16.1}, "P99 in a swap within 2 times the normal one"),
        ("sigterm", {"answered": {"200": 120, "503": 79, "none": 1}}, "every client is answered at SIGTERM"),
        ("sigterm", {"idle_closed": 49}, "every client is answered at SIGTERM"),
        ("sigterm", {"exit_s": 6.1}, "the exit within the drain and 2 s"),
        ("sigterm", {"exit_code": 1}, "the exit within the drain and 2 s"),
        (
            "overload",
            {"readyz": {"latency_ms": {"p99": 50.0}, "statuses": {200: 100}}},
            "/metrics and /readyz within 50 ms (P99) at 3 times saturation",
        ),
        (
            "overload",
            {"metrics": {"latency_ms": {"p99": 1.0}, "statuses": {200: 99, 503: 1}}},
            "/metrics and /readyz within 50 ms (P99) at 3 times saturation",
        ),
    ],
)
def test_one_that_is_missed_is_named(phase: str, changes: dict[str, Any], missed: str) -> None:
    report = copy.deepcopy(GOOD)
    report[phase] |= changes
    assert [aim for aim, is_reached in judge(report).items() if not is_reached] == [missed]
