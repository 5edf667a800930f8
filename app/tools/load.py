"""``query-intent load``: open-loop load on a running service, with latencies that can be trusted.

Each latency counts from the moment the request was *meant* to leave, so a server that stalls is charged for everybody
who would have waited, not only for the one request in flight. A run in which the generator itself was late is void.

    query-intent load --rate 250 --duration 30 --queries queries.csv --column query --slo-p99-ms 10
"""

from __future__ import annotations

import asyncio
import functools
import gc
import importlib
import re
import resource
import sys
import time
from array import array
from collections import Counter
from pathlib import Path
from typing import Any

import click
import numpy as np
import orjson
import uvloop

from app.tools.arrivals import (
    GAPS,
    NS_PER_S,
    OWN_QUERIES,
    VOID_LATE_SHARE,
    OpenLoop,
    lag_report,
    read_queries,
    realtime_priority,
    schedule,
)
from app.tools.http_client import ERRORS, TIMEOUT, UNSENT, ConnectionPool, Outcomes, Target

MAX_DURATION_S = 600
MAX_REQUESTS = 10_000_000  # 34 bytes each are held until the end
MAX_SERVER_TIMINGS = 250_000  # a larger run keeps every 2nd, 3rd, … header
LEAD_S = 0.01  # from the last preparation to the start of the schedule


def distribution_ms(durations_us: np.ndarray) -> dict[str, float | None]:
    """Percentiles of an HDR histogram (three significant digits) over whole microseconds, in ms; None of nothing."""
    from hdrh.histogram import HdrHistogram  # of the dev extra

    quantiles = {"p50": 50, "p90": 90, "p99": 99, "p99_9": 99.9, "max": 100}
    if not durations_us.size:
        return dict.fromkeys(quantiles) | {"count": 0}
    histogram = HdrHistogram(1, 3_600_000_000, 3)
    for value, count in zip(*np.unique(durations_us.astype(np.int64), return_counts=True), strict=True):
        histogram.record_value(int(value), int(count))
    percentiles = histogram.get_percentile_to_value_dict(list(quantiles.values()))
    return {name: round(percentiles[at] / 1e3, 3) for name, at in quantiles.items()} | {"count": durations_us.size}


def server_timing_ms(headers: list[bytes]) -> dict[str, dict[str, float | None]]:
    """A distribution for each stage named in Server-Timing headers such as ``queue;dur=0.1, total;dur=1.23``."""
    stages: dict[str, list[float]] = {}
    for header in headers:
        for stage, duration_ms in re.findall(rb"([\w-]+);dur=(\d+\.?\d*)", header):
            stages.setdefault(stage.decode(), []).append(float(duration_ms))
    return {stage: distribution_ms(np.array(found) * 1e3) for stage, found in stages.items()}


def report(outcomes: Outcomes, lag_ns: array[int], slo_p99_ms: float | None) -> dict[str, Any]:
    """What the run says, from its recorded part."""
    recorded = slice(outcomes.first_recorded, None)
    intended_ns, ended_ns, lag = (
        np.array(times)[recorded] for times in (outcomes.intended_ns, outcomes.ended_ns, lag_ns)
    )
    status = np.array(outcomes.status)[recorded]
    latency_us = (ended_ns - intended_ns) / 1e3
    is_ok = (status >= 200) & (status < 300)
    codes = Counter(status.tolist())
    elapsed_s = float(ended_ns.max() - intended_ns[0]) / NS_PER_S
    result: dict[str, Any] = {
        "sent": int((status != UNSENT).sum()),
        "completed": int((status > 0).sum()),
        "achieved_rate": round(float((status > 0).sum()) / elapsed_s, 1),
        "statuses": {str(code): count for code, count in sorted(codes.items()) if code > 0},
        "errors": {ERRORS[code]: count for code, count in sorted(codes.items()) if code < 0},
        "sources": {source.decode("utf-8", "replace"): count for source, count in outcomes.sources.most_common(16)},
        # Those given up count with the time they had waited: leaving them out would flatter a slow server.
        "latency_ms": distribution_ms(latency_us[is_ok | (status == TIMEOUT) | (status == UNSENT)]),
        "latency_ms_by_status": {
            str(code): distribution_ms(latency_us[status == code]) for code in sorted(codes) if code > 0
        },
        "server_timing_ms": server_timing_ms(outcomes.server_timings),
        "waited_for_connection": outcomes.waited_for_connection,
        "lag": lag_report(lag),
    }
    if slo_p99_ms is not None:
        # Of all requests, so refusals and failures can't make the tail look short.
        share = float((is_ok & (latency_us <= slo_p99_ms * 1e3)).mean())
        met = share >= 0.99 and not result["lag"]["void"]
        goodput = round(share * status.size / elapsed_s, 1)
        result["slo"] = {"p99_ms": slo_p99_ms, "within_share": round(share, 6), "goodput": goodput, "met": met}
    return result


async def run_load(
    target: Target,
    requests: list[bytes],
    offsets_ns: np.ndarray,
    *,
    warmup_s: float,
    connections: int,
    timeout_s: float,
    slo_p99_ms: float | None,
) -> dict[str, Any]:
    first_recorded = int(np.searchsorted(offsets_ns, int(warmup_s * NS_PER_S)))
    intended_ns = array("q", bytes(offsets_ns.nbytes))
    stride = (len(offsets_ns) - first_recorded) // MAX_SERVER_TIMINGS + 1
    outcomes = Outcomes(intended_ns, first_recorded=first_recorded, header_stride=stride)
    pool = ConnectionPool(target, requests, outcomes, size=connections, timeout_s=timeout_s)
    loop = asyncio.get_running_loop()
    try:
        await pool.open()
        open_loop = OpenLoop(intended_ns, pool.send)
        start_ns = time.monotonic_ns() + int(LEAD_S * NS_PER_S)
        np.frombuffer(intended_ns, np.int64)[:] = offsets_ns + start_ns
        cpu_at_start_s = [_cpu_s()]
        loop.call_later(LEAD_S + warmup_s, lambda: cpu_at_start_s.append(_cpu_s()))
        progress = loop.create_task(_progress_task(open_loop, outcomes)) if sys.stderr.isatty() else None
        with realtime_priority() as is_realtime:
            await open_loop.run()
            await pool.drain()
        cpu_s = _cpu_s() - cpu_at_start_s[-1]
        if progress:
            progress.cancel()
    finally:
        await pool.aclose()
    result = report(outcomes, open_loop.lag_ns, slo_p99_ms)
    result["generator_cpu_us_per_request"] = round(cpu_s * 1e6 / (len(offsets_ns) - first_recorded), 1)
    result["realtime_priority"] = is_realtime
    return result


async def _progress_task(open_loop: OpenLoop, outcomes: Outcomes) -> None:
    try:
        while True:
            await asyncio.sleep(1)
            line = f"{open_loop.sent:,} sent, {outcomes.answered:,} answered, {outcomes.failed:,} failed"
            click.echo(f"\r{line}\x1b[K", nl=False, err=True)
    finally:
        click.echo("\r\x1b[K", nl=False, err=True)


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def summary(result: dict[str, Any]) -> str:
    """The few lines for a person."""
    latency, lag, cpu_us = result["latency_ms"], result["lag"], result["generator_cpu_us_per_request"]
    counts = ", ".join(f"{name}: {count:,}" for name, count in (result["statuses"] | result["errors"]).items())
    lines = [
        f"{result['sent']:,} sent, {result['completed']:,} answered, {result['achieved_rate']:,}/s ({counts})",
        "latency ms   "
        + "  ".join(f"{name} {'–' if value is None else value}" for name, value in latency.items() if name != "count"),
        f"generator    {cpu_us} µs CPU a request, {lag['late_share']:.3%} of the sends late by > 1 ms",
    ]
    if lag["void"]:
        lines.append(
            f"VOID: the generator was late for more than {VOID_LATE_SHARE:.1%} of its sends; use a quieter machine"
        )
    if slo := result.get("slo"):
        lines.append(f"SLO {'met' if slo['met'] else 'MISSED'}: {slo['within_share']:.2%} within {slo['p99_ms']} ms")
    return "\n".join(lines)


class Unreachable(click.ClickException):
    exit_code = 2  # 1 is a missed SLO


def _resolve(url: str, allow_remote: bool) -> Target:
    try:
        target = Target.parse(url)
    except (ValueError, OSError) as error:
        raise click.BadParameter(str(error), param_hint="--url") from error
    if not target.is_loopback and not allow_remote:
        raise click.UsageError(
            f"{target.address} is not this machine. Load on somebody else's service is an attack, and a network in "
            "between is measured with it: give --allow-remote if both are meant."
        )
    return target


POSITIVE = click.FloatRange(0, min_open=True)
SECONDS = click.FloatRange(0, MAX_DURATION_S, min_open=True)
READABLE = click.Path(exists=True, dir_okay=False, path_type=Path)
WRITABLE = click.Path(dir_okay=False, writable=True, path_type=Path)
_option = functools.partial(click.option, show_default=True)


@click.command("load", context_settings={"help_option_names": ["-h", "--help"]})
@_option("--url", default="http://127.0.0.1:8080/v1/intent", help="Where to POST.")
@_option("--rate", type=POSITIVE, required=True, help="Requests a second, on average.")
@_option("--duration", type=SECONDS, default=10, help="Recorded seconds.")
@_option("--warmup", type=click.FloatRange(0, MAX_DURATION_S), default=2, help="Seconds of load before the recording.")
@_option("--arrivals", type=click.Choice(list(GAPS)), default="poisson", help="How requests are spaced.")
@_option("--connections", type=click.IntRange(1, 10_000), default=64, help="Keep-alive connections, used in turn.")
@_option("--queries", type=READABLE, help="A .txt, .csv, .tsv or .jsonl file; some built in otherwise.")
@_option("--column", help="The column or member that holds the query; default: query, else text.")
@_option("--seed", type=click.IntRange(0), default=0, help="Of the arrivals and the order of the queries.")
@_option("--timeout-ms", type=click.IntRange(1, 60_000), default=1000, help="When a request is given up.")
@_option("--send-timeout", is_flag=True, help="Send that to the service as well, as timeout_ms.")
@_option("--slo-p99-ms", type=POSITIVE, help="Exit with 1 unless 99 % of all requests get a 2xx within this time.")
@_option("--json-out", type=WRITABLE, help="Write the line of JSON here too.")
@_option("--allow-remote", is_flag=True, help="Permit a target that is not this machine.")
def command(
    url: str,
    rate: float,
    duration: float,
    warmup: float,
    arrivals: str,
    connections: int,
    queries: Path | None,
    column: str | None,
    seed: int,
    timeout_ms: int,
    send_timeout: bool,
    slo_p99_ms: float | None,
    json_out: Path | None,
    allow_remote: bool,
) -> None:
    """Put an open-loop load on a running service and report its latency.

    Requests leave when the schedule says, whatever the server does, and latency counts from that moment. The last line
    of stdout is JSON; a summary goes to stderr.
    """
    try:
        importlib.import_module("hdrh.histogram")
    except ImportError as error:
        raise click.ClickException("the load tester needs hdrhistogram: pip install 'query-intent[dev]'") from error
    target = _resolve(url, allow_remote)
    if rate * (warmup + duration) > MAX_REQUESTS:
        raise click.UsageError(f"{rate * (warmup + duration):,.0f} requests are more than {MAX_REQUESTS:,}")
    try:
        texts = read_queries(queries, column) if queries else OWN_QUERIES
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--queries") from error
    offsets_ns = schedule(arrivals, rate=rate, duration_s=warmup + duration, seed=seed)
    if not (offsets_ns >= warmup * NS_PER_S).any():
        raise click.UsageError(f"{rate}/s for {duration} s is no request at all")
    order = np.random.default_rng(seed).permutation(len(texts))[: len(offsets_ns)]
    extra = {"timeout_ms": timeout_ms} if send_timeout else {}
    requests = [target.encode(orjson.dumps({"query": texts[place], **extra})) for place in order]

    gc.freeze()
    gc.disable()  # nothing here makes cycles, and a collection would be a pause in the schedule
    try:
        result = uvloop.run(
            run_load(
                target,
                requests,
                offsets_ns,
                warmup_s=warmup,
                connections=connections,
                timeout_s=timeout_ms / 1e3,
                slo_p99_ms=slo_p99_ms,
            )
        )
    except (OSError, asyncio.TimeoutError) as error:
        raise Unreachable(f"can't connect to {target.address}:{target.port}: {error or 'timed out'}") from error
    finally:
        gc.enable()
        gc.unfreeze()

    asked: dict[str, Any] = {"url": url, "arrivals": arrivals, "rate": rate, "duration_s": duration, "warmup_s": warmup}
    asked |= {"connections": connections, "queries": len(requests), "seed": seed, "timeout_ms": timeout_ms}
    line = orjson.dumps(asked | result).decode()
    click.echo(summary(result), err=True)
    click.echo(line)
    if json_out:
        json_out.write_text(line + "\n")
    if not result["completed"] or (slo_p99_ms is not None and not result["slo"]["met"]):
        raise click.exceptions.Exit(1)


if __name__ == "__main__":
    command(prog_name="query-intent load")
