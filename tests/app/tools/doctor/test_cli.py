"""The command: what it says of machines that are well, and of ones that aren't."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from app import cli

NO_LOAD = ("--seconds", "0")


@pytest.fixture(autouse=True)
def patient_objective(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine may be busy with other tests."""
    monkeypatch.setenv("QUERY_INTENT_SLO_MS", "1000")


def doctor(*arguments: object) -> Result:
    return CliRunner().invoke(cli.cli, ["doctor", *map(str, arguments)])


def said(result: Result) -> str:
    """Without the breaks of long lines."""
    return " ".join(result.stdout.split())


def test_a_machine_that_is_well_is_told_so_and_everything_is_in_the_report(tiny_bundle: Path, tmp_path: Path) -> None:
    report = tmp_path / "doctor.json"
    result = doctor("--bundle", tiny_bundle, "--target", "null", "--seconds", "1", "--rate", "50", "--json", report)
    assert result.exit_code == 0, result.output
    verdict, send_back = result.stdout.splitlines()[-2:]
    assert verdict.startswith("WELL: target null")
    assert send_back == f"send back: {report}"
    found = json.loads(report.read_text())
    assert found["well"] is True
    assert [check["name"] for check in found["checks"]] == [
        *("machine", "open files", "shared memory", "bundle"),
        *("canary", "latency", "service", "load", "after the load"),
    ]


def test_without_chips_it_says_what_is_missing_and_takes_the_cpu(tiny_bundle: Path) -> None:
    result = doctor("--bundle", tiny_bundle, *NO_LOAD)
    for missing in ("neuron devices", "neuron driver", "neuron tools", "neuron sdk"):
        assert f"note     {missing}" in result.stdout
    assert "has no target 'cpu'" in said(result)
    assert "query-intent compile --target cpu" in said(result)
    assert result.exit_code == 1


def test_a_bundle_that_is_not_there_is_named(tmp_path: Path) -> None:
    result = doctor("--bundle", tmp_path / "absent", "--target", "null", *NO_LOAD)
    assert result.exit_code == 1
    assert "NOT WELL: bundle" in result.stdout
    assert "--bundle" in result.stdout


def test_a_bundle_that_was_changed_is_named(copy_bundle: Callable[[], Path]) -> None:
    bundle = copy_bundle()
    (bundle / "tokenizer.json").write_text("{}")
    result = doctor("--bundle", bundle, "--target", "null", *NO_LOAD)
    assert result.exit_code == 1
    assert "tokenizer.json has sha256" in said(result)


def test_too_few_cores_are_counted(tiny_bundle: Path) -> None:
    result = doctor("--bundle", tiny_bundle, "--target", "null", "--cores", "4096", *NO_LOAD)
    assert result.exit_code == 1
    assert "--cores asks for 4096" in said(result)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--target", "gpu"], "--target"),
        (["--seconds", "nan"], "--seconds"),
        (["--seconds", "3601"], "--seconds"),
        (["--rate", "0"], "--rate"),
        (["--port", "65536"], "--port"),
        (["--cores", "0"], "--cores"),
        (["--json", "/nonexistent/doctor.json"], "/nonexistent is no directory"),
    ],
)
def test_wrong_usage_is_refused_with_its_name(arguments: list[str], reason: str) -> None:
    result = doctor(*arguments)
    assert result.exit_code == 2
    assert reason in result.stderr


def test_a_setting_of_the_environment_that_is_wrong_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUERY_INTENT_SLO_MS", "fast")
    assert "QUERY_INTENT_SLO_MS=fast" in str(doctor(*NO_LOAD).exception)


def test_its_help_teaches() -> None:
    shown = doctor("--help").stdout
    assert "query-intent doctor --target inf1 --cores 16" in shown
    assert "Exit codes: 0 only when well" in shown
