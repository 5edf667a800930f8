"""The command line of the doctor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import orjson

from app.settings import SHIPPED_BUNDLE, Settings
from app.tools.doctor.check import Check, is_well
from app.tools.doctor.examination import Asked, Examination
from app.tools.doctor.host import Host
from app.tools.doctor.report import document, lines, verdict
from app.tools.parameters import POSITIVE, WRITABLE, Finite, check_new_file

NOT_WELL = 1
DEFAULT_SECONDS = 60
MAX_SECONDS = 3600


@click.command(
    "doctor",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog=f"Exit codes: 0 only when well (warnings are), {NOT_WELL} not well, 2 wrong usage.",
)
@click.option(
    "--bundle",
    type=click.Path(path_type=Path),
    help=f"What is to be served.  [default: {SHIPPED_BUNDLE.name}, shipped]",
)
@click.option(
    "--target",
    type=click.Choice(["auto", "cpu", "torch", "inf1", "inf2", "null"]),
    help="Which compiled form of it. auto: the chips' where there are chips, else the CPU's.  [default: auto]",
)
@click.option(
    "--seconds",
    type=Finite(0, MAX_SECONDS),
    default=DEFAULT_SECONDS,
    show_default=True,
    help="Of load on a service; 0 leaves it out.",
)
@click.option(
    "--rate", type=POSITIVE, help="Queries a second of it.  [default: a tenth of what the cores could compute]"
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Where it listens.  [default: a free one]")
@click.option("--cores", type=click.IntRange(1), help="How many there must be: 16 on an inf1.6xlarge.")
@click.option("--json", "json_out", type=WRITABLE, callback=check_new_file, help="Write everything found to this file.")
def command(
    bundle: Path | None,
    target: str | None,
    seconds: float,
    rate: float | None,
    port: int,
    cores: int | None,
    json_out: Path | None,
) -> None:
    """Say whether this machine can serve, what it lacks, and what to do about it.

    From the device up: chips, driver, tools and who has the cores; the SDK, its pins and its compiler; the bundle; the
    golden answers and the row times on every core; a real service on 127.0.0.1 under a load. What something else
    needs is checked first, and what can't be checked any more is left out. Where there is no chip it says what is
    missing and examines the CPU target in the same steps. Settings of the service, such as QUERY_INTENT_SLO_MS,
    hold here as well. Nothing else should run on the machine meanwhile.

    \b
    query-intent doctor                                      this machine, the shipped bundle, some minutes
    query-intent doctor --seconds 0                          without the load, half a minute
    query-intent doctor --target inf1 --cores 16 --bundle runs/bundle --json first-light.json
    """
    host = Host()
    settings = Settings.read(host.environ, {"bundle": bundle, "target": target})
    asked = Asked(settings=settings, seconds=seconds, rate=rate, port=port, cores=cores)
    examination = Examination(asked, host, tell=lambda what: click.echo(f"… {what}", err=True))
    checks: list[Check] = []
    for check in examination.run():
        checks.append(check)
        click.echo(lines(check))
    click.echo(verdict(checks, examination.target))
    if json_out:
        words: dict[str, Any] = {"bundle": str(settings.bundle), "target": settings.target, "seconds": seconds}
        found = document(checks, examination.target, host.environ, words | {"rate": rate, "cores": cores})
        json_out.write_bytes(orjson.dumps(found, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS))
        click.echo(f"send back: {json_out}")
    else:
        click.echo("send back: these lines, or all that was found with --json FILE")
    if not is_well(checks):
        raise click.exceptions.Exit(NOT_WELL)
