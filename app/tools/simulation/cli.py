"""``query-intent simulate``: the latency that a service would hold, by its own batching code in virtual time."""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import orjson

from app.bundle import Bundle
from app.cpu_budget import cpu_budget, share_out
from app.settings import SHIPPED_BUNDLE, Settings
from app.tools.arrivals import BURST_FACTOR, BURST_S, LAWS, Law
from app.tools.parameters import READABLE, WRITABLE, Finite, check_new_file
from app.tools.query_files import read_file
from app.tools.simulation.deployment import Deployment
from app.tools.simulation.figures import Figures
from app.tools.simulation.lengths import Lengths, LogNormal, Observed
from app.tools.simulation.measured import measure
from app.tools.simulation.rates import parse_rates
from app.tools.simulation.row_times import ROW_TOKENS, RowTimes
from app.tools.simulation.simulator import Simulation
from app.tools.simulation.table import HEADER, line, rows, title, verdict
from app.tools.simulation.workload import DEFAULT_REQUESTS, Traffic, Workload
from app.tools.traces import Trace, read_trace

PRODUCT_QUERIES = LogNormal(9, 22)


def _read(parse: Callable[[str], Any]) -> Callable[[click.Context, click.Parameter, str | None], Any]:
    """A callback for an option that ``parse`` reads, raising ``ValueError`` with what is wrong."""

    def callback(_context: click.Context, _parameter: click.Parameter, text: str | None) -> Any:
        try:
            return None if text is None else parse(text)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None

    return callback


COUNT, UP_TO_256, REQUESTS = click.IntRange(1, 4096), click.IntRange(0, 256), click.IntRange(100, 10_000_000)
MICROSECONDS, MILLISECONDS = Finite(0, 1e6), Finite(0, 60_000, min_open=True)
BURSTY = f"bursty: {BURST_S:g} s of {BURST_FACTOR:g} times the rate"
SETTINGS = {name: field.default for name, field in Settings.model_fields.items()}
_option = functools.partial(click.option, show_default=True)


@click.command("simulate", context_settings={"help_option_names": ["-h", "--help"]})
@_option(
    "--rate",
    "rates",
    metavar="RATES",
    callback=_read(parse_rates),
    help="Queries a second: one, some (100,250,400), or from:to:step.",
)
@_option("--cores", type=COUNT, default=cpu_budget, show_default="those here", help="Cores that run the model.")
@_option("--shared-cores", is_flag=True, help="Event loops run on them too, as on a CPU; else the host has its own.")
@_option("--workers", type=UP_TO_256, default=0, help="As in serve; 0: one for every four cores.")
@_option("--replicas", type=UP_TO_256, default=0, help="As in serve: of each worker; 0 shares the cores out.")
@_option("--connections", type=click.IntRange(1, 100_000), default=64, help="Keep-alive connections of all clients.")
@_option(
    "--row-ms",
    metavar="MS",
    callback=_read(RowTimes.stated),
    help=f"What a row takes: 3 (any, of up to {ROW_TOKENS} tokens), or by tokens 8:1.3,16:1.9,32:2.9.",
)
@_option(
    "--bundle",
    type=click.Path(path_type=Path),
    help="Without --row-ms, rows of this one are timed; default: the shipped one.",
)
@_option("--target", type=click.Choice(["auto", "cpu", "torch"]), help="Which of the bundle's; default: auto.")
@_option("--request-us", type=MICROSECONDS, default=100, help="What a request costs its worker's event loop.")
@_option("--row-us", type=MICROSECONDS, default=100, help="What a finished row costs it beside that.")
@_option(
    "--tokens",
    metavar="TOKENS",
    callback=_read(LogNormal.stated),
    help="Of a query: MEAN:P99, or one number. [default: 9:22, product queries]",
)
@_option("--queries", type=READABLE, help="Lengths as in these queries instead: .txt, .csv, .tsv or .jsonl.")
@_option("--column", help="The column or member that holds the query; default: query, else text.")
@_option("--arrivals", type=click.Choice(LAWS), help=f"How queries are spread; {BURSTY}.  [default: poisson]")
@_option(
    "--replay",
    type=READABLE,
    help="Arrivals of a .txt, .csv or .tsv (column time) in seconds; with --rate at another pace.",
)
@_option("--requests", type=REQUESTS, help=f"Queries at each rate. [default: {DEFAULT_REQUESTS:,}, or all of --replay]")
@_option("--slo-ms", type=MILLISECONDS, default=SETTINGS["slo_ms"], help="As in serve.")
@_option("--timeout-ms", type=MILLISECONDS, default=SETTINGS["timeout_ms"], help="As in serve.")
@_option("--queue-tokens", type=click.IntRange(16), default=SETTINGS["queue_tokens"], help="As in serve.")
@_option(
    "--retries",
    type=click.IntRange(0, 1000),
    default=0,
    help="A query that is refused (429) is sent again when the reply said so, as often as this.",
)
@_option("--seed", type=click.IntRange(0), default=0, help="Another one is another draw of all that is chance.")
@_option("--out", type=WRITABLE, callback=check_new_file, help="Write everything as JSON.")
@_option(
    "--picture",
    type=WRITABLE,
    callback=check_new_file,
    help="Draw latency against rate (.png, .svg, .pdf); needs matplotlib.",
)
def command(
    rates: list[float] | None,
    cores: int,
    shared_cores: bool,
    workers: int,
    replicas: int,
    connections: int,
    row_ms: RowTimes | None,
    bundle: Path | None,
    target: str | None,
    request_us: float,
    row_us: float,
    tokens: LogNormal | None,
    queries: Path | None,
    column: str | None,
    arrivals: Law | None,
    replay: Path | None,
    requests: int | None,
    slo_ms: float,
    timeout_ms: float,
    queue_tokens: int,
    retries: int,
    seed: int,
    out: Path | None,
    picture: Path | None,
) -> None:
    """Predict the latency of a service before it runs, to choose its workers and the number of instances.

    The service's own code decides which queries form a row and which are refused; only time is simulated. Queries come
    when they come, whatever the service does (open loop), each on one of the connections that are free, and a
    connection stays with the worker that accepted it.

    \b
    How far do 16 cores of an accelerator in 4 workers go, where a row takes 3 ms?
      query-intent simulate --cores 16 --workers 4 --row-ms 3 --rate 16000:32000:8000
       rate/s  P50 ms  P99 ms   P99.9  answers  goodput   429   504  load  fill  a row  busy  loops
       16,000    3.70    4.59    5.01   16,028   16,028    0%    0%   42%   43%    3.0  100%    61%
       24,000    3.93    5.25    5.81   24,042   24,042    0%    0%   63%   63%    4.5  100%    83%
       32,000    5.13   44.27   46.14   32,056   24,095    0%    0%   85%   84%    6.0  100%   100%
      99% of the queries are answered within 10 ms up to 24,000/s, of these rates

    ANSWERS are all that came in time for the caller, GOODPUT those within the objective. An idle replica takes whatever
    waits, so replicas are BUSY at any rate; LOAD is what full rows would make of it. BUSY and LOOPS, the event loop,
    are those of the worker that got the most connections, by chance. Here its loop is the limit: more connections are
    spread more evenly (with --connections 512 it holds 32,000/s), and more workers have less to do each, but a query
    can't change the queue it is in. Where LOAD is the limit, more cores or instances help. Another --seed is another
    draw of chance. For 60,000 queries a second, plan three of these instances, or four to do without one.

    \b
    What do two cores hold, with the shipped bundle as it runs on this machine?
      query-intent simulate --cores 2 --shared-cores --rate 100:1000:100 --picture sweep.png

    Its rows are timed first, warm and after pauses, so keep the machine quiet. On a CPU the event loop takes its part
    of the same cores. What a request costs it (--request-us), tells the worker's CPU on the null target (make bench);
    add the load tester's where a measurement had it on the same cores.
    """
    if picture and importlib.util.find_spec("matplotlib") is None:
        raise click.ClickException("--picture needs matplotlib: pip install matplotlib")
    workers, replicas = share_out(cores, workers=workers, replicas=replicas)
    _check_cores(cores, shared_cores, workers, replicas)
    deployment = Deployment(
        workers=workers,
        replicas=replicas,
        shared_cores=cores if shared_cores else None,
        connections=connections,
        request_s=request_us / 1e6,
        row_s=row_us / 1e6,
        slo_s=slo_ms / 1e3,
        timeout_s=timeout_ms / 1e3,
        queue_tokens=queue_tokens,
    )
    if arrivals and replay:
        raise click.UsageError("give --arrivals or --replay, not both")
    if column and not (queries or replay):
        raise click.UsageError("--column is for a file: give --queries or --replay")
    try:
        trace = read_trace(replay, None if queries else column) if replay else None
        lengths = _lengths(tokens, queries, column, trace, bundle)
        traffic = Traffic(arrivals or "poisson", trace, lengths, requests, seed)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if rates is None:
        if traffic.own_rate is None:
            raise click.UsageError("give --rate, or --replay a file that has one")
        rates = [traffic.own_rate]
    if row_ms and (target or (bundle and not isinstance(lengths, Observed))):
        raise click.UsageError("with --row-ms no bundle is timed: it only serves to tokenise --queries")
    row_times = row_ms or _measure(bundle, target, workers * replicas)

    click.echo(title(deployment))
    click.echo(rows(row_times))
    click.echo(HEADER)
    sweep: list[Figures] = []
    for rate in rates:
        sweep.append(_run(deployment, row_times, traffic.workload(rate), retries=retries, seed=seed))
        click.echo(line(sweep[-1]))
    click.echo(verdict(sweep, slo_ms))
    if out:
        asked = {"deployment": asdict(deployment), "rows_ms": {b: s * 1e3 for b, s in row_times.warm_s.items()}}
        asked |= {"arrivals": str(replay) if replay else traffic.law, "retries": retries, "seed": seed}
        out.write_bytes(orjson.dumps(asked | {"results": sweep}, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_INDENT_2))
    if picture:
        from app.tools.simulation.picture import draw

        draw(sweep, slo_ms=slo_ms, title=title(deployment), path=picture)


def _run(deployment: Deployment, row_times: RowTimes, workload: Workload, *, retries: int, seed: int) -> Figures:
    label, hidden = f"{workload.rate:,.0f}/s", not sys.stderr.isatty()
    with click.progressbar(length=len(workload.at_s), label=label, file=sys.stderr, hidden=hidden) as bar:
        return Simulation(deployment, row_times, workload, seed=seed, retries=retries, progress=bar.update).run()


def _lengths(
    tokens: LogNormal | None, queries: Path | None, column: str | None, trace: Trace | None, bundle: Path | None
) -> Lengths:
    """Raises ``ValueError`` for a file without queries."""
    if tokens is not None and queries is not None:
        raise click.UsageError("give --tokens or --queries, not both")
    if queries is not None:
        return Observed((row.text for row in read_file(queries, column=column)), Bundle(bundle or SHIPPED_BUNDLE))
    if tokens is None and trace is not None and trace.queries is not None:
        return Observed(trace.queries, Bundle(bundle or SHIPPED_BUNDLE))
    return tokens or PRODUCT_QUERIES


def _measure(bundle: Path | None, target: str | None, replicas: int) -> RowTimes:
    loaded = Bundle(bundle or SHIPPED_BUNDLE)
    click.echo(f"timing rows of {loaded.name} on this machine, some 15 s", err=True)
    return measure(loaded, target or "auto", replicas=min(replicas, cpu_budget()))


def _check_cores(cores: int, shared: bool, workers: int, replicas: int) -> None:
    if shared and workers > cores:
        raise click.UsageError(f"{workers} workers on {cores} shared cores: at most a worker a core")
    if not shared and workers * replicas > cores:
        raise click.UsageError(f"{workers} x {replicas} replicas on {cores} cores: at most a replica a core")
