"""The command ``query-intent``: one subcommand a task, each loaded only when it is called."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import click

from app.errors import StartError
from app.settings import Settings
from app.version import VERSION

# name -> (where the click command is, one line of help); importing them all would cost seconds of torch.
LAZY = {
    "classify": ("app.tools.classify", "Classify a query, a file or standard input, without a server."),
    "load": ("app.tools.load.cli", "Put an open-loop load on a running service and report the latency."),
    "doctor": ("app.tools.doctor.cli", "Say whether this machine can serve, and what it lacks."),
    "simulate": ("app.tools.simulation.cli", "Predict the latency of a service, to choose workers and instances."),
    "prepare": ("models.prepare", "Make a training table out of the raw data sets."),
    "train": ("models.train", "Fine-tune an encoder on a table of texts and labels."),
    "compile": ("models.compile", "Compile a checkpoint into a bundle's target."),
    "evaluate": ("models.evaluate", "Judge a checkpoint or a compiled target on labelled queries."),
    "compare": ("models.compare", "Compare two models on the same queries, and decide go or no-go."),
}


class LazyGroup(click.Group):
    """Lists every subcommand without importing it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return ["serve", *LAZY]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in LAZY:
            return super().get_command(ctx, cmd_name)
        module, _ = LAZY[cmd_name]
        command: click.Command = import_module(module).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [("serve", serve.get_short_help_str(80)), *((name, text) for name, (_, text) in LAZY.items())]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(VERSION, prog_name="query-intent")
def cli() -> None:
    """What a shopper wants, from the text of the search box.

    \b
    query-intent serve                          the service on http://127.0.0.1:8080
    query-intent classify "where is my parcel"  one answer, without a server
    query-intent load --rate 250 --duration 30  what latency it holds under load
    """


def settings_options(command: Callable[..., None]) -> Callable[..., None]:
    """One option a setting, with the field's own description, so that flag, variable and help can't drift apart."""
    for name, field in reversed(Settings.model_fields.items()):
        shown = "" if name == "bundle" or field.default is None else f" [default: {field.default}]"
        # Given at all, flag_value makes a flag of an option, even where it is None.
        kind: dict[str, Any] = (
            {"is_flag": True, "flag_value": "true"} if field.annotation is bool else {"metavar": "VALUE"}
        )
        option = click.option(
            f"--{name.replace('_', '-')}", name, default=None, help=f"{field.description}{shown}", **kind
        )
        command = option(command)
    return command


@cli.command()
@settings_options
def serve(**flags: Any) -> None:
    """Serve a bundle over HTTP until SIGTERM or Ctrl-C.

    Each option is also a variable of the environment, QUERY_INTENT_ and its name in capitals (--slo-ms is
    QUERY_INTENT_SLO_MS); a flag wins. An unknown variable under that prefix stops the start.
    """
    from app.logs import configure_logging
    from app.supervisor import Supervisor

    settings = Settings.read(os.environ, flags)
    configure_logging(settings.log_level, log_queries=settings.log_queries)

    async def run() -> int:
        return await Supervisor(settings).run()

    sys.exit(asyncio.run(run()))


def main() -> None:
    """Entry point: whatever is wrong with the call or the start is one line, with an exit code other than 0."""
    try:
        # Not standalone, a subcommand's own exit code comes back as the result.
        sys.exit(cli.main(sys.argv[1:] or ["--help"], standalone_mode=False))
    except click.exceptions.Abort:
        sys.exit(130)
    except click.ClickException as error:
        command = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "query-intent"
        hint = f" (see {command} --help)" if isinstance(error, click.UsageError) else ""
        click.echo(f"query-intent: {error.format_message()}{hint}", err=True)
        sys.exit(error.exit_code)
    except StartError as error:
        click.echo(f"query-intent: {error}", err=True)
        sys.exit(1)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] in ("app", "models"):
            raise
        click.echo(
            f"query-intent: {error.name} isn't installed; training and compiling need: "
            "make install, or pip install -e '.[train]'",
            err=True,
        )
        sys.exit(1)


if __name__ == "__main__":
    main()
