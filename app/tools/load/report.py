"""What a run says, and whether it may say anything: numbers for programs, a few lines for a person."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.tools.arrivals import NS_PER_S
from app.tools.load.outcomes import ERRORS, TIMEOUT, UNSENT, Recording
from app.tools.load.percentiles import distribution

# A generator that is late sends another schedule than the one asked for, and finds the replies late as well.
LATE_MS = 1.0
VOID_LATE_SHARE = 0.001
VOID_RULE = f"more than {VOID_LATE_SHARE:.1%} of the sends were more than {LATE_MS:g} ms late"
P99_SHARE = 0.99


def report(run: Recording, slo_p99_ms: float | None) -> dict[str, Any]:
    """Everything but what was asked for; times in ms, rates in requests a second."""
    codes = Counter(run.status.tolist())
    answered = int((run.status > 0).sum())
    elapsed_s = run.elapsed_s
    result: dict[str, Any] = {
        "duration_s": round(run.planned_s, 3),
        "scheduled": len(run),
        "sent": int((run.status != UNSENT).sum()),
        "completed": answered,
        "offered_rate": round(len(run) / run.planned_s, 1),
        "achieved_rate": round(answered / elapsed_s, 1),
        "statuses": {str(code): count for code, count in sorted(codes.items()) if code > 0},
        "errors": {ERRORS[code]: count for code, count in sorted(codes.items()) if code < 0},
        "sources": _sources(run),
        "latency_ms": distribution(run.latency_ms[_would_have_waited(run)]),
        # What a closed loop reports: a reply's time since its request was written, however long that had to wait.
        "latency_from_send_ms": distribution((run.ended_ns - run.sent_ns)[run.is_ok] / 1e6),
        "latency_ms_by_status": {
            str(code): distribution(run.latency_ms[run.status == code]) for code in sorted(codes) if code > 0
        },
        "latency_ms_by_source": {
            name: distribution(run.latency_ms[run.is_ok & (run.source == place)])
            for place, name in enumerate(run.source_names)
            if (run.is_ok & (run.source == place)).any() and name
        },
        "server_timing_ms": server_timing(run.server_timings),
        "waited_for_connection": run.waited_for_connection,
        "lag": lag(run.lag_ns),
        "generator_cpu_share": round(run.cpu_s / elapsed_s, 3),
        "generator_cpu_us_per_request": round(run.cpu_s * 1e6 / len(run), 1),
        "realtime_priority": run.is_realtime,
    }
    if slo_p99_ms is not None:
        result["slo"] = objective(run, slice(None), run.planned_s, slo_p99_ms)
    if len(run.steps) > 1:
        result["steps"] = _steps(run, slo_p99_ms)
    return result


def objective(run: Recording, part: slice, seconds: float, slo_p99_ms: float) -> dict[str, Any]:
    """How many of all that was scheduled got a 2xx in time: refusals and failures can't make the tail look short.

    ``goodput`` is those a second of the schedule.
    """
    is_good = (run.is_ok & (run.latency_ms <= slo_p99_ms))[part]
    share = float(is_good.mean()) if is_good.size else None
    return {
        "p99_ms": slo_p99_ms,
        "within_share": share and round(share, 6),
        "goodput": round(float(is_good.sum()) / seconds, 1),
        "met": share is not None and share >= P99_SHARE and not lag(run.lag_ns)["void"],
    }


def lag(lag_ns: NDArray[np.int64]) -> dict[str, Any]:
    """How late the generator itself was, and whether that makes the run void."""
    late_share = float((lag_ns > LATE_MS * 1e6).mean())
    p99_ms, max_ms = (np.percentile(lag_ns, [99, 100]) / 1e6).round(3).tolist()
    is_void = late_share > VOID_LATE_SHARE
    return {"late_share": round(late_share, 6), "p99_ms": p99_ms, "max_ms": max_ms, "void": is_void, "rule": VOID_RULE}


def server_timing(headers: list[bytes]) -> dict[str, dict[str, float | None]]:
    """A distribution for each stage named in Server-Timing headers such as ``queue;dur=0.1, total;dur=1.23``."""
    stages: dict[str, list[float]] = {}
    for header in headers:
        for stage, duration_ms in re.findall(rb"([\w-]+);dur=(\d+\.?\d*)", header):
            stages.setdefault(stage.decode(), []).append(float(duration_ms))
    return {stage: distribution(np.array(found)) for stage, found in stages.items()}


def summary(result: dict[str, Any]) -> str:
    """The few lines for a person."""
    counts = ", ".join(f"{name}: {count:,}" for name, count in (result["statuses"] | result["errors"]).items())
    lines = [
        f"{result['sent']:,} sent, {result['completed']:,} answered, {result['achieved_rate']:,}/s ({counts})",
        f"latency ms   {_percentiles(result['latency_ms'])}",
    ]
    for name, latency in result["latency_ms_by_source"].items() if len(result["sources"]) > 1 else ():
        lines.append(f"  {name:<10} {_percentiles(latency)}  ({latency['count']:,})")
    for step in result.get("steps", ()):
        good = f"  {step['slo']['within_share']:.2%} in time" if "slo" in step and step["scheduled"] else ""
        lines.append(f"  at {step['rate']:g}/s   {_percentiles(step['latency_ms'])}{good}")
    lines.append(
        f"generator    {result['generator_cpu_us_per_request']} µs CPU a request, {result['generator_cpu_share']:.0%} "
        f"of a core, {result['lag']['late_share']:.3%} of the sends late by > {LATE_MS:g} ms"
    )
    if slo := result.get("slo"):
        verdict = "met" if slo["met"] else "not judged" if result["lag"]["void"] else "MISSED"
        lines.append(
            f"SLO {verdict}: {slo['within_share']:.2%} answered within {slo['p99_ms']:g} ms, "
            f"goodput {slo['goodput']:,}/s"
        )
    if result["lag"]["void"]:
        lines.append(f"VOID: {VOID_RULE}. Use a quieter machine or a lower rate")
    return "\n".join(lines)


def _percentiles(latency: dict[str, float | None]) -> str:
    return "  ".join(f"{name} {'–' if value is None else value}" for name, value in latency.items() if name != "count")


def _would_have_waited(run: Recording) -> NDArray[np.bool_]:
    """The answered, and those given up with the time they had waited: without them a slow server looks fast."""
    has_given_up: NDArray[np.bool_] = (run.status == TIMEOUT) | (run.status == UNSENT)
    return run.is_ok | has_given_up


def _sources(run: Recording) -> dict[str, int]:
    counts = np.bincount(run.source, minlength=len(run.source_names)).tolist()
    return {name: count for name, count in zip(run.source_names, counts, strict=True) if name and count}


def _steps(run: Recording, slo_p99_ms: float | None) -> list[dict[str, Any]]:
    starts_s = np.cumsum([0.0, *(step.seconds for step in run.steps[:-1])])
    starts = np.searchsorted(run.intended_ns - run.start_ns, starts_s * NS_PER_S).tolist()
    steps: list[dict[str, Any]] = []
    for step, start, end in zip(run.steps, starts, [*starts[1:], len(run)], strict=True):
        part = slice(start, end)
        latency_ms = run.latency_ms[part][_would_have_waited(run)[part]]
        steps.append({"rate": step.rate, "scheduled": end - start, "latency_ms": distribution(latency_ms)})
        if slo_p99_ms is not None:
            steps[-1]["slo"] = objective(run, part, step.seconds, slo_p99_ms)
    return steps
