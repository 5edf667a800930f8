from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click.testing
import numpy as np
import pytest

from app.tools.http_client import TIMEOUT, Outcomes
from app.tools.load import command, distribution_ms, report, server_timing_ms

Serve = Callable[..., Any]  # the fixture of conftest.py
SHORT = ["--rate", "100", "--duration", "0.3", "--warmup", "0", "--connections", "2"]


def load(*arguments: str) -> tuple[int, dict[str, Any], str]:
    """Exit code, the last line of stdout, everything said."""
    result = click.testing.CliRunner().invoke(command, arguments)
    said = result.stdout.splitlines()
    return result.exit_code, json.loads(said[-1]) if said and said[-1].startswith("{") else {}, result.output


async def answer(request: Any) -> None:
    request.reply(headers="Server-Timing: queue;dur=0.5, total;dur=1.25\r\n")


async def refuse(request: Any) -> None:
    request.reply(429)


def test_a_stall_is_charged_for_every_request_intended_during_it(serve: Serve) -> None:
    async def stall_once(request: Any) -> None:
        if request.number == 10:
            await asyncio.sleep(0.4)
        request.reply()

    url = serve(stall_once).url
    _, result, _ = load(
        *("--url", url, "--rate", "100", "--duration", "0.6", "--warmup", "0"),
        *("--arrivals", "constant", "--connections", "1"),
    )
    # Some 40 of 60 requests were meant to leave during the stall and waited up to 0.4 s, though only one was in
    # flight: a closed loop would report a median near zero. Slow machines only add to these bounds.
    assert result["latency_ms"]["max"] >= 400
    assert result["latency_ms"]["p50"] >= 80
    assert result["latency_ms"]["p90"] >= 290
    assert result["waited_for_connection"] >= 35


def test_the_line_says_what_was_sent_and_what_came_back(serve: Serve, tmp_path: Path) -> None:
    server = serve(answer)
    exit_code, result, _ = load("--url", server.url, *SHORT, "--json-out", str(tmp_path / "load.json"))
    sent = len(server.bodies)
    assert exit_code == 0
    assert sent > 10
    assert result["sent"] == result["completed"] == result["latency_ms"]["count"] == sent
    assert result["statuses"] == {"200": sent}
    assert result["errors"] == {}
    assert result["sources"] == {"model": sent}
    assert result["server_timing_ms"]["queue"]["p50"] == 0.5
    assert result["server_timing_ms"]["total"]["count"] == sent
    assert result["generator_cpu_us_per_request"] > 0
    assert json.loads((tmp_path / "load.json").read_text()) == result


def test_the_warm_up_is_sent_and_not_recorded(serve: Serve) -> None:
    server = serve(answer)
    _, result, _ = load("--url", server.url, *SHORT, "--warmup", "0.3", "--arrivals", "constant")
    assert len(server.bodies) == 59
    assert result["sent"] == result["sources"]["model"] == result["server_timing_ms"]["total"]["count"] == 30


def test_queries_come_from_the_file_and_the_time_limit_goes_along_when_asked(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "queries.csv").write_text("id,query\n1,oak table\n2,lamp\n")
    server = serve(answer)
    load(
        *("--url", server.url, *SHORT, "--timeout-ms", "900", "--send-timeout"),
        *("--queries", str(tmp_path / "queries.csv"), "--column", "query"),
    )
    bodies = [json.loads(body) for body in server.bodies]
    assert {body["query"] for body in bodies} == {"oak table", "lamp"}
    assert {body["timeout_ms"] for body in bodies} == {900}


def test_fast_refusals_miss_the_slo(serve: Serve) -> None:
    exit_code, result, said = load("--url", serve(refuse).url, *SHORT, "--slo-p99-ms", "10000")
    assert exit_code == 1
    assert result["slo"]["within_share"] == 0
    assert result["latency_ms"]["count"] == 0
    assert result["latency_ms_by_status"]["429"]["count"] == result["sent"]
    assert "SLO MISSED" in said


def test_a_dead_port_is_one_clear_line() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]  # bound, but nobody listens
        exit_code, _, said = load("--url", f"http://127.0.0.1:{port}/", *SHORT)
    assert exit_code == 2
    assert said.startswith(f"Error: can't connect to 127.0.0.1:{port}: ")
    assert said.count("\n") == 1


def test_a_server_that_answers_nothing_fails_the_run(serve: Serve) -> None:
    async def hang_up(request: Any) -> None:
        request.hang_up()

    exit_code, result, _ = load("--url", serve(hang_up).url, *SHORT)
    assert exit_code == 1
    assert result["completed"] == 0
    assert set(result["errors"]) <= {"closed", "unsent"}


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--url", "http://192.0.2.1/"], "--allow-remote"),
        (["--url", "https://127.0.0.1/"], "is not an http:// URL"),
        (["--url", "http://127.0.0.1:port/"], "--url"),
        (["--duration", "601"], "--duration"),
        (["--duration", "600", "--rate", "100000"], "are more than 10,000,000"),
        (["--rate", "0.001"], "no request at all"),
        (["--rate", "0"], "--rate"),
        (["--connections", "0"], "--connections"),
        (["--queries", "/nonexistent"], "--queries"),
    ],
)
def test_what_can_not_be_run_is_refused_with_its_name(arguments: list[str], reason: str) -> None:
    exit_code, _, said = load(*SHORT, *arguments)
    assert exit_code == 2
    assert reason in said


def test_without_the_histogram_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hdrh.histogram", None)
    exit_code, _, said = load(*SHORT)
    assert exit_code == 1
    assert "pip install" in said


def test_it_runs_as_a_module() -> None:
    ran = subprocess.run([sys.executable, "-m", "app.tools.load", "--help"], capture_output=True, text=True, check=True)
    assert "--slo-p99-ms" in ran.stdout


def outcomes_of(latencies_ms: list[float], statuses: list[int]) -> Outcomes:
    intended_ns = array("q", [n * 1_000_000 for n in range(len(statuses))])
    outcomes = Outcomes(intended_ns)
    outcomes.status = array("h", statuses)
    ended = zip(intended_ns, latencies_ms, strict=True)
    outcomes.ended_ns = array("q", [at_ns + int(latency_ms * 1e6) for at_ns, latency_ms in ended])
    return outcomes


def test_one_failure_in_a_hundred_still_meets_a_p99_and_two_do_not() -> None:
    on_time = array("q", [0] * 100)
    for failures, is_met in ((0, True), (1, True), (2, False)):
        outcomes = outcomes_of([5.0] * 100, [200] * (100 - failures) + [503] * failures)
        assert report(outcomes, on_time, slo_p99_ms=5)["slo"]["met"] is is_met


def test_a_void_run_proves_no_slo() -> None:
    found = report(outcomes_of([1.0] * 100, [200] * 100), array("q", [0] * 99 + [2_000_000]), slo_p99_ms=10)
    assert found["lag"]["void"]
    assert found["slo"]["within_share"] == 1
    assert not found["slo"]["met"]


def test_a_request_given_up_counts_with_the_time_it_waited() -> None:
    found = report(outcomes_of([1.0] * 9 + [1000.0], [200] * 9 + [TIMEOUT]), array("q", [0] * 10), None)
    assert found["errors"] == {"timeout": 1}
    assert found["latency_ms"]["count"] == 10
    assert found["latency_ms"]["max"] == pytest.approx(1000, rel=1e-3)
    assert found["latency_ms_by_status"]["200"]["max"] == pytest.approx(1, rel=1e-3)


def test_percentiles_are_true_to_three_digits() -> None:
    found = distribution_ms(np.arange(1, 10_001) * 100)  # 0.1 … 1,000 ms
    for name, expected in {"p50": 500, "p90": 900, "p99": 990, "p99_9": 999, "max": 1000}.items():
        assert found[name] == pytest.approx(expected, rel=1e-3)


def test_stages_are_read_from_server_timing() -> None:
    found = server_timing_ms([b"tokenize;dur=0.02, cache;desc=hit, total;dur=2", b"total;dur=4.0"])
    assert {stage: timing["count"] for stage, timing in found.items()} == {"tokenize": 1, "total": 2}
    assert found["tokenize"]["max"] == 0.02
