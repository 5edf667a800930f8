"""The command ``query-intent``."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from typing import Any

import click
import pytest
from click.testing import CliRunner

from app import cli, supervisor
from app.settings import PREFIX, Settings
from app.version import VERSION

COMMANDS = ["serve", *cli.LAZY]
FLAGS = {name: f"--{name.replace('_', '-')}" for name in Settings.model_fields}
# Something other than the default for each setting.
VALUES = {
    "host": "0.0.0.0",
    "port": "9000",
    "ops_host": "0.0.0.0",
    "ops_port": "9001",
    "bundle": "/srv/bundle",
    "target": "null",
    "null_ms": "2.5",
    "workers": "2",
    "replicas": "3",
    "quorum": "0.75",
    "slo_ms": "7",
    "timeout_ms": "50",
    "max_queries": "64",
    "max_body_bytes": "1024",
    "max_list_body_bytes": "2048",
    "max_connections": "100",
    "queue_tokens": "1000",
    "cache_bytes": "65536",
    "cache_ttl_s": "60",
    "warm_queries": "/srv/top.txt",
    "overrides": "/srv/overrides.tsv",
    "priors": "/srv/priors.json",
    "keep_alive_s": "65",
    "balancer_idle_s": "60",
    "read_timeout_s": "5",
    "load_timeout_s": "60",
    "stall_timeout_s": "5",
    "drain_delay_s": "20",
    "drain_timeout_s": "15",
    "emf": "QueryIntent",
    "emf_dimensions": "Stage=test",
    "fallback": "off",
    "placement": "data-parallel",
    "log_level": "debug",
    "log_queries": "true",
}


@pytest.fixture(autouse=True)
def no_settings_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in list(os.environ):
        if name.startswith(PREFIX):
            monkeypatch.delenv(name)


class StandIn:
    """In the supervisor's place: keeps the settings and ends with exit code 7."""

    settings: Settings

    def __init__(self, settings: Settings) -> None:
        StandIn.settings = settings

    async def run(self) -> int:
        return 7


@pytest.fixture
def supervised(monkeypatch: pytest.MonkeyPatch, loggers_as_they_were: None) -> type[StandIn]:
    monkeypatch.setattr(supervisor, "Supervisor", StandIn)
    return StandIn


def invoke(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Any:
    """The exit code of ``query-intent`` with these arguments, as the console script would end."""
    monkeypatch.setattr(sys, "argv", ["query-intent", *arguments])
    with pytest.raises(SystemExit) as ending:
        cli.main()
    return ending.value.code


class TestHelp:
    def test_it_lists_every_command_with_one_line_each(self) -> None:
        result = CliRunner().invoke(cli.cli, ["--help"])
        assert result.exit_code == 0
        listed = re.findall(r"^  ([a-z]+)  +\S.*$", result.output.split("Commands:")[1], re.MULTILINE)
        assert listed == COMMANDS

    @pytest.mark.parametrize("option", ["-h", "--help"])
    @pytest.mark.parametrize("command", COMMANDS)
    def test_every_command_explains_itself_and_its_options(self, command: str, option: str) -> None:
        result = CliRunner().invoke(cli.cli, [command, option])
        assert result.exit_code == 0, result.output
        assert f"{command} [OPTIONS]" in result.output
        with click.Context(cli.cli) as context:
            found = cli.cli.get_command(context, command)
        assert found is not None
        assert found.help

    def test_without_a_command_it_shows_how_to_use_it(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert invoke(monkeypatch) == 0
        shown = capsys.readouterr().out
        assert shown.startswith("Usage: ")
        assert "serve" in shown

    def test_it_says_its_version(self) -> None:
        assert CliRunner().invoke(cli.cli, ["--version"]).output == f"query-intent, version {VERSION}\n"

    def test_help_loads_no_engine_no_framework_and_no_training(self) -> None:
        code = (
            "import sys; from app.cli import cli; cli(['--help'], standalone_mode=False); "
            "loaded = {'torch', 'numpy', 'fastapi', 'openvino', 'models'} & set(sys.modules); "
            "sys.exit(', '.join(loaded) or 0)"
        )
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert (ended.returncode, ended.stderr.strip()) == (0, "")

    @pytest.mark.parametrize("field", Settings.model_fields)
    def test_the_help_of_serve_says_of_each_setting_what_the_settings_say(self, field: str) -> None:
        output = CliRunner().invoke(cli.cli, ["serve", "--help"]).output
        description: Any = Settings.model_fields[field].description
        assert re.search(rf"^  {FLAGS[field]}\b", output, re.MULTILINE)
        assert " ".join(description.split()) in " ".join(output.split())
        default = Settings.model_fields[field].default
        assert (f"{description} [default: {default}]" in " ".join(output.split())) is (
            default is not None and field != "bundle"
        )


class TestServe:
    def test_every_setting_is_tried_here(self) -> None:
        assert set(VALUES) == set(Settings.model_fields)

    @pytest.mark.parametrize("field", Settings.model_fields)
    def test_each_setting_has_a_flag_and_a_variable_that_mean_the_same(
        self, monkeypatch: pytest.MonkeyPatch, supervised: type[StandIn], field: str
    ) -> None:
        flag = [FLAGS[field]] if field == "log_queries" else [FLAGS[field], VALUES[field]]
        assert invoke(monkeypatch, "serve", *flag) == 7
        by_flag = supervised.settings
        monkeypatch.setenv(f"{PREFIX}{field.upper()}", VALUES[field])
        assert invoke(monkeypatch, "serve") == 7
        assert supervised.settings == by_flag
        assert getattr(by_flag, field) != getattr(Settings(), field)
        assert by_flag.model_copy(update={field: getattr(Settings(), field)}) == Settings()

    def test_without_either_it_takes_the_defaults(
        self, monkeypatch: pytest.MonkeyPatch, supervised: type[StandIn]
    ) -> None:
        invoke(monkeypatch, "serve")
        assert supervised.settings == Settings()

    def test_a_flag_wins_over_the_variable(self, monkeypatch: pytest.MonkeyPatch, supervised: type[StandIn]) -> None:
        monkeypatch.setenv("QUERY_INTENT_PORT", "9000")
        invoke(monkeypatch, "serve", "--port", "9001")
        assert supervised.settings.port == 9001

    def test_logs_are_as_severe_as_asked(self, monkeypatch: pytest.MonkeyPatch, supervised: type[StandIn]) -> None:
        invoke(monkeypatch, "serve", "--log-level", "error")
        assert logging.getLogger().level == logging.ERROR


@pytest.mark.usefixtures("supervised")
class TestRefusals:
    @pytest.mark.parametrize(
        ("variables", "arguments", "line"),
        [
            ({"PROT": "1"}, [], "QUERY_INTENT_PROT: no such setting; see query-intent serve --help"),
            (
                {"SLO_MS": "fast"},
                [],
                "QUERY_INTENT_SLO_MS=fast: Input should be a valid number, unable to parse string as a number",
            ),
            ({}, ["--port", "65536"], "QUERY_INTENT_PORT=65536: Input should be less than or equal to 65535"),
            (
                {},
                ["--target", "gpu"],
                "QUERY_INTENT_TARGET=gpu: Input should be 'auto', 'cpu', 'torch', 'inf1', 'inf2' or 'null'",
            ),
            ({}, ["--port", "9", "--ops-port", "9"], "ops_port: 9 is the traffic port as well"),
        ],
    )
    def test_a_start_that_can_not_be_is_one_line_and_exit_code_1(
        self,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
        variables: dict[str, str],
        arguments: list[str],
        line: str,
    ) -> None:
        for name, value in variables.items():
            monkeypatch.setenv(PREFIX + name, value)
        assert invoke(monkeypatch, "serve", *arguments) == 1
        out, err = capsys.readouterr()
        assert (out, err) == ("", f"query-intent: {line}\n")

    @pytest.mark.parametrize("arguments", [["serve", "--prot"], ["serf"], ["serve", "--port"], ["serve", "extra"]])
    def test_a_command_line_that_is_wrong_is_one_line_and_exit_code_2_and_names_the_part(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
    ) -> None:
        assert invoke(monkeypatch, *arguments) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("query-intent: ")
        assert arguments[-1] in line
        assert line.endswith(" --help)")

    def test_a_package_that_is_not_installed_is_named_with_what_installs_it(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setitem(cli.LAZY, "train", ("no_such_package.train", "Train."))
        assert invoke(monkeypatch, "train") == 1
        line = capsys.readouterr().err
        assert line.startswith("query-intent: no_such_package isn't installed; ")
        assert line.endswith("make install, or pip install -e '.[train]'\n")

    def test_a_module_of_our_own_that_is_missing_is_a_bug_and_not_advice(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(cli.LAZY, "train", ("models.no_such_module", "Train."))
        monkeypatch.setattr(sys, "argv", ["query-intent", "train"])
        with pytest.raises(ModuleNotFoundError, match=r"models\.no_such_module"):
            cli.main()
