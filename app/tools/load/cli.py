"""The command line of the load tester."""

from __future__ import annotations

import asyncio
import functools
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import click
import orjson

from app.tools.arrivals import BURST_FACTOR, BURST_S, BURST_SHARE, LAWS
from app.tools.load import trials
from app.tools.load.outcomes import Recording
from app.tools.load.parameters import SECONDS, parse_rates
from app.tools.load.plan import MAX_DURATION_S
from app.tools.load.report import VOID_RULE, report, summary
from app.tools.load.run import run
from app.tools.load.workload import DEFAULT_DURATION_S, FIRST_RATE, Asked, Workload
from app.tools.parameters import POSITIVE, READABLE, WRITABLE, Finite, check_new_file

MISSED, UNREACHABLE, VOID = 1, 2, 3  # exit codes; 2 is also click's own for wrong usage


_option = functools.partial(click.option, show_default=True)


class Unreachable(click.ClickException):
    exit_code = UNREACHABLE


@click.command(
    "load",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog=f"Exit codes: {MISSED} the objective was missed or nothing answered; {UNREACHABLE} wrong usage or nobody "
    f"there; {VOID} void: {VOID_RULE}, so that the numbers say more about this machine than about the server.",
)
@_option("--url", default="http://127.0.0.1:8080/v1/intent", help="Where to POST.")
@_option("--body", default='{"query": "{query}"}', help="JSON to send; {query} in a string of it is the query.")
@_option("--rate", type=POSITIVE, help="Requests a second, on average.")
@_option("--steps", metavar="RATES", callback=parse_rates, help="Several rates one after the other, as in 100,200,400.")
@_option("--replay", type=READABLE, help="Send at the times of a .txt, .csv or .tsv (column time), in seconds.")
@_option(
    "--find-rate", is_flag=True, help=f"Find the highest rate that meets --slo-p99-ms, from --rate or {FIRST_RATE:g}."
)
@_option("--arrivals", type=click.Choice(LAWS), help="How the requests of a rate are spread.  [default: poisson]")
@_option(
    "--burst-factor",
    type=Finite(1, 1 / BURST_SHARE),
    help=f"bursty: times the rate for some {BURST_S * 1e3:g} ms, the last {BURST_SHARE:.0%} of each cycle; before it "
    f"less, so that the average holds.  [default: {BURST_FACTOR}]",
)
@_option("--duration", type=SECONDS, help=f"Recorded seconds, all of a trace.  [default: {DEFAULT_DURATION_S:g}]")
@_option("--warmup", type=Finite(0, MAX_DURATION_S), default=2, help="Seconds of load before the recording.")
@_option(
    "--queries", type=READABLE, help="A .txt, .csv, .tsv or .jsonl file; a trace's own or some built in otherwise."
)
@_option("--column", help="The column or member that holds the query; default: query, else text.")
@_option("--zipf-s", type=Finite(0, 10), help="Draw the k-th query with a probability in proportion to 1/k^s.")
@_option("--distinct", type=click.IntRange(1), help="Only the first so many distinct queries; made up without a file.")
@_option("--seed", type=click.IntRange(0), default=0, help="Of the arrivals and the order of the queries.")
@_option("--connections", type=click.IntRange(1, 10_000), default=64, help="Keep-alive connections, used in turn.")
@_option("--timeout-ms", type=click.IntRange(1, 60_000), default=1000, help="When a request is given up.")
@_option("--slo-p99-ms", type=POSITIVE, help="The objective: 99 % of all requests get a 2xx within this time.")
@_option("--json-out", type=WRITABLE, callback=check_new_file, help="Write the line of JSON here too.")
@_option(
    "--picture",
    type=WRITABLE,
    callback=check_new_file,
    help="Draw latency over time and its distribution, or the trials.",
)
def command(json_out: Path | None, picture: Path | None, **options: Any) -> None:
    """Put an open-loop load on any JSON endpoint and report its latency.

    Requests leave when the schedule says, whatever the server does, and latency counts from that moment. The last line
    of stdout is JSON; progress and a summary go to stderr.

    \b
    query-intent load --rate 250 --duration 30 --slo-p99-ms 10
    query-intent load --find-rate --slo-p99-ms 10 --queries queries.csv
    query-intent load --steps 100,200,400,800 --duration 40 --picture steps.png
    query-intent load --rate 1000 --zipf-s 1 --distinct 10000
    query-intent load --replay searches.csv
    query-intent load --rate 50 --url http://127.0.0.1:8000/infer --body '{"inputs": ["{query}"]}'
    """
    asked = Asked(**options)
    _require("hdrh.histogram", "the load tester needs hdrhistogram: make install, or pip install -e '.[load]'")
    if picture:
        _require("matplotlib.figure", "--picture needs matplotlib: pip install matplotlib")
    ended = (_search if asked.find_rate else _load)(Workload(asked))
    line = orjson.dumps(asked.recorded | ended.result).decode()
    click.echo(ended.summary, err=True)
    click.echo(line)
    if json_out:
        json_out.write_text(line + "\n")
    if picture:
        ended.draw(picture)
    raise click.exceptions.Exit(ended.exit_code)


class Ended(NamedTuple):
    result: dict[str, Any]
    summary: str
    exit_code: int
    draw: Callable[[Path], None]


def _load(workload: Workload) -> Ended:
    """One run."""
    asked = workload.asked
    recording = _measure(workload, asked.rate, asked.seed)
    result = report(recording, asked.slo_p99_ms)
    is_missed = not result["completed"] or not result.get("slo", {"met": True})["met"]
    exit_code = VOID if result["lag"]["void"] else MISSED if is_missed else 0

    def draw(path: Path) -> None:
        from app.tools.load.picture import draw_run

        draw_run(path, recording, asked.slo_p99_ms)

    return Ended(result, summary(result), exit_code, draw)


def _search(workload: Workload) -> Ended:
    """Many runs."""
    asked = workload.asked
    slo_p99_ms = asked.slo_p99_ms
    assert slo_p99_ms is not None  # Asked has made sure of it
    measure = functools.partial(_measure, workload)
    result = trials.search(measure, first_rate=asked.rate or FIRST_RATE, slo_p99_ms=slo_p99_ms, seed=asked.seed)
    found = result["found"]
    exit_code = VOID if found["void"] else MISSED if found["rate"] is None else 0

    def draw(path: Path) -> None:
        from app.tools.load.picture import draw_search

        draw_search(path, result["trials"], slo_p99_ms, found["rate"])

    return Ended(result, trials.summary(found, slo_p99_ms), exit_code, draw)


def _measure(workload: Workload, rate: float | None, seed: int) -> Recording:
    plan = workload.plan(rate, seed=seed)
    requests = workload.requests(plan, seed=seed)
    asked, target = workload.asked, workload.target
    try:
        return run(plan, requests, target, connections=asked.connections, timeout_s=asked.timeout_ms / 1e3)
    except (OSError, asyncio.TimeoutError) as error:
        raise Unreachable(f"can't connect to {target.address}:{target.port}: {error or 'timed out'}") from error


def _require(module: str, otherwise: str) -> None:
    """Said before the run, as ``check_new_file`` does."""
    try:
        importlib.import_module(module)
    except ImportError as error:
        raise click.ClickException(otherwise) from error
