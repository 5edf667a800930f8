"""What of the aims was reached."""

from __future__ import annotations

from typing import Any

SWAP_P99_TIMES = 2.0
STOP_MARGIN_S = 2.0
OPERATIONS_MS = 50.0


def judge(report: dict[str, Any]) -> dict[str, bool]:
    """Aim -> whether ``report``, the found of each phase by its name, says so."""
    swap, sigterm, overload = report["swap"], report["sigterm"], report["overload"]
    probes = overload["metrics"], overload["readyz"]
    answered = sigterm["answered"]
    return {
        "no request fails while instances are restarted": report["restarts"]["failed"] == 0,
        "no request fails while an instance never becomes ready": report["never_ready"]["failed"] == 0,
        # Whoever was on a connection of the killed one got no answer: 502 of the proxy. Nobody was turned away: 503.
        "a killed instance costs the requests on its connections only": set(
            report["killed_behind_a_proxy_that_redispatches"]["outcomes"]
        )
        <= {"200", "502"},
        "no request fails while a model is swapped": swap["failed"] == 0 and set(swap["results"]) == {"done"},
        f"P99 in a swap within {SWAP_P99_TIMES:g} times the normal one": swap["swap_p99_ms"]
        <= SWAP_P99_TIMES * swap["normal_p99_ms"],
        "every client is answered at SIGTERM": sum(answered.get(status, 0) for status in ("200", "503"))
        == sigterm["queued"]
        and sigterm["idle_closed"] == sigterm["idle"],
        f"the exit within the drain and {STOP_MARGIN_S:g} s": sigterm["exit_code"] == 0
        and sigterm["exit_s"] <= sigterm["drain_s"] + STOP_MARGIN_S,
        f"/metrics and /readyz within {OPERATIONS_MS:g} ms (P99) at 3 times saturation": all(
            probe["latency_ms"]["p99"] < OPERATIONS_MS and set(probe["statuses"]) == {200} for probe in probes
        ),
    }
