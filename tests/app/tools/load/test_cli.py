"""The command, against a real server."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import time
from collections import Counter, deque
from pathlib import Path
from typing import Any

import click.testing
import pytest

from app.tools.load import report
from app.tools.load.cli import command
from tests import needs
from tests.app.tools.load.tiny_server import Request, Serve

SHORT = ["--rate", "100", "--duration", "0.3", "--warmup", "0", "--connections", "2"]


@pytest.fixture(autouse=True)
def no_run_is_void(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine of the tests is."""
    monkeypatch.setattr(report, "LATE_MS", 1e6)


def load(*arguments: str) -> tuple[int, dict[str, Any], str]:
    """Exit code, the last line of stdout, everything said."""
    result = click.testing.CliRunner().invoke(command, arguments)
    said = result.stdout.splitlines()
    return result.exit_code, json.loads(said[-1]) if said and said[-1].startswith("{") else {}, result.output


async def answer(request: Request) -> None:
    request.reply(headers="Server-Timing: queue;dur=0.5, total;dur=1.25\r\n")


async def refuse(request: Request) -> None:
    request.reply(429)


def queries_of(bodies: list[bytes]) -> list[str]:
    return [json.loads(body)["query"] for body in bodies]


def test_a_stall_is_charged_for_every_request_intended_during_it(serve: Serve) -> None:
    async def stall_once(request: Request) -> None:
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
    assert result["latency_from_send_ms"]["p50"] < 80


def test_the_line_says_what_was_sent_and_what_came_back(serve: Serve, tmp_path: Path) -> None:
    server = serve(answer)
    exit_code, result, _ = load("--url", server.url, *SHORT, "--json-out", str(tmp_path / "load.json"))
    sent = len(server.bodies)
    assert exit_code == 0
    assert sent > 10
    assert result["scheduled"] == result["sent"] == result["completed"] == result["latency_ms"]["count"] == sent
    assert result["statuses"] == {"200": sent}
    assert result["errors"] == {}
    assert result["sources"] == {"model": sent}
    assert result["server_timing_ms"]["queue"]["p50"] == 0.5
    assert result["server_timing_ms"]["total"]["count"] == sent
    assert result["generator_cpu_us_per_request"] > 0
    assert 0 < result["generator_cpu_share"] < 1
    assert (result["url"], result["arrivals"], result["rate"], result["seed"]) == (server.url, "poisson", 100, 0)
    assert json.loads((tmp_path / "load.json").read_text()) == result


def test_the_warm_up_is_sent_and_not_recorded(serve: Serve) -> None:
    server = serve(answer)
    _, result, _ = load("--url", server.url, *SHORT, "--warmup", "0.3", "--arrivals", "constant")
    assert result["sent"] == result["sources"]["model"] == result["server_timing_ms"]["total"]["count"] == 30
    assert len(server.bodies) > 40


def test_any_json_body_can_be_sent(serve: Serve) -> None:
    server = serve(answer)
    load("--url", server.url, *SHORT, "--body", '{"inputs": ["{query}"], "timeout_ms": 900}')
    bodies = [json.loads(body) for body in server.bodies]
    assert {body["timeout_ms"] for body in bodies} == {900}
    assert all(len(body["inputs"]) == 1 for body in bodies)


def test_queries_come_from_the_file(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "queries.csv").write_text("id,q\n1,oak table\n2,lamp\n")
    server = serve(answer)
    load("--url", server.url, *SHORT, "--queries", str(tmp_path / "queries.csv"), "--column", "q")
    counts = Counter(queries_of(server.bodies))
    assert set(counts) == {"oak table", "lamp"}
    assert abs(counts["lamp"] - counts["oak table"]) <= 1


def test_a_zipf_mixture_sends_the_first_query_most(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "queries.txt").write_text("lamp\nlamp\ndesk\nsofa\nrug\n")
    server = serve(answer)
    load(*("--url", server.url, *SHORT, "--zipf-s", "3", "--distinct", "3"), "--queries", str(tmp_path / "queries.txt"))
    counts = Counter(queries_of(server.bodies))
    assert set(counts) <= {"lamp", "desk", "sofa"}
    assert counts["lamp"] > len(server.bodies) / 2


def test_distinct_queries_are_made_up_without_a_file(serve: Serve) -> None:
    server = serve(answer)
    load("--url", server.url, *SHORT, "--distinct", "1000")
    assert len(set(queries_of(server.bodies))) == len(server.bodies)


def test_a_trace_is_replayed_with_its_times_and_queries(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("time,query\n100.0,lamp\n100.2,desk\n100.2,lamp\n100.3,sofa\n200,rug\n")
    came: list[float] = []

    async def note(request: Request) -> None:
        came.append(time.monotonic())
        request.reply()

    server = serve(note)
    replay = ["--replay", str(tmp_path / "log.csv"), "--warmup", "0", "--duration", "1"]
    exit_code, result, _ = load("--url", server.url, *replay)
    assert exit_code == 0
    assert result["arrivals"] == "replayed"
    assert result["scheduled"] == 4  # the fifth came after more than a second
    assert queries_of(server.bodies)[0] == "lamp"
    assert sorted(queries_of(server.bodies)[1:3]) == ["desk", "lamp"]
    assert queries_of(server.bodies)[3] == "sofa"
    assert came[3] - came[0] >= 0.29


def test_steps_are_sent_one_after_the_other_and_each_is_reported(serve: Serve) -> None:
    steps = ["--steps", "50,150", "--duration", "0.4", "--warmup", "0.2", "--arrivals", "constant"]
    _, result, said = load("--url", serve(answer).url, *steps, "--slo-p99-ms", "10000")
    assert [(step["rate"], step["scheduled"]) for step in result["steps"]] == [(50, 10), (150, 30)]
    assert [step["slo"]["met"] for step in result["steps"]] == [True, True]
    assert "at 150/s" in said


def test_bursts_are_sent(serve: Serve) -> None:
    bursty = ["--rate", "200", "--duration", "0.4", "--warmup", "0", "--arrivals", "bursty", "--burst-factor", "5"]
    _, result, _ = load("--url", serve(answer).url, *bursty)
    assert (result["arrivals"], result["burst_factor"]) == ("bursty", 5)
    assert result["scheduled"] > 40


def test_fast_refusals_miss_the_slo(serve: Serve) -> None:
    exit_code, result, said = load("--url", serve(refuse).url, *SHORT, "--slo-p99-ms", "10000")
    assert exit_code == 1
    assert result["slo"]["within_share"] == 0
    assert result["latency_ms"]["count"] == 0
    assert result["latency_ms_by_status"]["429"]["count"] == result["sent"]
    assert "SLO MISSED" in said


def test_a_met_slo_ends_with_0(serve: Serve) -> None:
    exit_code, result, said = load("--url", serve(answer).url, *SHORT, "--slo-p99-ms", "10000")
    assert exit_code == 0
    assert result["slo"]["met"]
    assert "SLO met: 100.00% answered within 10000 ms" in said


@pytest.mark.parametrize("objective", [[], ["--slo-p99-ms", "10000"]])
def test_a_void_run_ends_with_3_with_an_objective_or_without(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, objective: list[str]
) -> None:
    monkeypatch.setattr(report, "LATE_MS", -1.0)  # so that every send is late
    exit_code, result, said = load("--url", serve(answer).url, *SHORT, *objective)
    assert exit_code == 3
    assert result["lag"]["void"]
    assert "VOID: more than 0.1% of the sends were more than 1 ms late" in said


def test_every_scheduled_request_has_one_outcome_on_a_server_that_misbehaves(serve: Serve) -> None:
    async def misbehave(request: Request) -> None:
        turn = request.number % 6
        if turn < 4:
            request.reply((200, 429, 503, 504)[turn])
        elif turn == 4:
            request.reset()

    exit_code, result, _ = load(
        *("--url", serve(misbehave).url, "--rate", "300", "--duration", "0.3", "--warmup", "0"),
        *("--timeout-ms", "100", "--connections", "20"),
    )
    assert exit_code == 0
    assert set(result["statuses"]) == {"200", "429", "503", "504"}
    assert {"reset", "timeout"} <= set(result["errors"])
    assert sum(result["statuses"].values()) + sum(result["errors"].values()) == result["scheduled"]


@needs.MATPLOTLIB
def test_the_highest_rate_is_found(serve: Serve, tmp_path: Path) -> None:
    recent: deque[float] = deque([0.0] * 20, maxlen=20)

    async def answer_up_to_200_a_second(request: Request) -> None:
        recent.append(time.monotonic())
        request.reply(200 if recent[-1] - recent[0] > 19 / 200 else 429)

    picture = tmp_path / "search.png"
    exit_code, result, said = load(
        *("--url", serve(answer_up_to_200_a_second).url, "--find-rate", "--slo-p99-ms", "1000"),
        *("--arrivals", "constant", "--duration", "0.2", "--warmup", "0", "--picture", str(picture)),
    )
    assert exit_code == 0
    assert 100 < result["found"]["rate"] < 250
    assert result["found"]["confidence"] > 0.8
    assert f"{result['found']['rate']:,}/s with P99 ≤ 1000 ms: met in" in said
    assert picture.stat().st_size > 0


def test_a_rate_that_no_server_can_meet_ends_with_1(serve: Serve) -> None:
    exit_code, result, said = load(
        *("--url", serve(refuse).url, "--find-rate", "--slo-p99-ms", "10", "--rate", "1.5"),
        *("--arrivals", "constant", "--duration", "0.7", "--warmup", "0"),
    )
    assert exit_code == 1
    assert result["found"]["rate"] is None
    assert "NOTHING FOUND: the objective is missed even at 1.5/s" in said


@needs.MATPLOTLIB
def test_a_picture_of_the_run_is_drawn(serve: Serve, tmp_path: Path) -> None:
    exit_code, _, _ = load("--url", serve(answer).url, *SHORT, "--picture", str(tmp_path / "run.png"))
    assert exit_code == 0
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")


def test_a_dead_port_is_one_clear_line() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]  # bound, but nobody listens
        exit_code, _, said = load("--url", f"http://127.0.0.1:{port}/", *SHORT)
    assert exit_code == 2
    assert said.startswith(f"Error: can't connect to 127.0.0.1:{port}: ")
    assert said.count("\n") == 1


def test_a_server_that_answers_nothing_fails_the_run(serve: Serve) -> None:
    async def hang_up(request: Request) -> None:
        request.hang_up()

    exit_code, result, _ = load("--url", serve(hang_up).url, *SHORT)
    assert exit_code == 1
    assert result["completed"] == 0
    assert set(result["errors"]) <= {"closed", "unsent"}


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "give one of --rate, --steps, --replay and --find-rate"),
        (["--rate", "1", "--steps", "1,2"], "give one of"),
        (["--find-rate", "--steps", "1,2", "--slo-p99-ms", "10"], "goes with neither --steps nor --replay"),
        (["--find-rate"], "--find-rate needs --slo-p99-ms"),
        (["--replay", __file__, "--arrivals", "poisson"], "--replay has its own"),
        (["--replay", __file__], "don't know .py"),
        (["--rate", "1", "--burst-factor", "2"], "--burst-factor is for --arrivals bursty"),
        (["--rate", "1", "--arrivals", "bursty", "--burst-factor", "5.1"], "1<=x<=5"),
        (["--rate", "1", "--column", "q"], "--column is for --queries and --replay"),
        (["--rate", "1", "--url", "https://127.0.0.1/"], "is not an http:// URL"),
        (["--rate", "1", "--url", "http://127.0.0.1:port/"], "--url"),
        (["--rate", "1", "--body", '{"query": "lamp"}'], "no string in it has {query}"),
        (["--rate", "1", "--duration", "3601"], "--duration"),
        (["--rate", "100000", "--duration", "600"], "requests are more than 5,000,000"),
        (["--rate", "0.001"], "no request at all"),
        (["--rate", "0"], "--rate"),
        (["--rate", "nan"], "'--rate': nan is no finite number"),
        (["--rate", "1", "--slo-p99-ms", "inf"], "'--slo-p99-ms': inf is no finite number"),
        (["--steps", "1,fast"], "--steps"),
        (["--rate", "1", "--connections", "0"], "--connections"),
        (["--rate", "1", "--queries", "/nonexistent"], "--queries"),
        (["--rate", "1", "--queries", __file__], "don't know .py"),
        (["--rate", "1", "--distinct", "1000000"], "give a file of --queries"),
        (["--rate", "1", "--json-out", "/nonexistent/x.json"], "/nonexistent is no directory"),
        (["--rate", "1", "--picture", "run.xyz"], "ends in none of .png"),
    ],
)
def test_what_can_not_be_run_is_refused_with_its_name(arguments: list[str], reason: str) -> None:
    exit_code, _, said = load(*arguments)
    assert exit_code == 2
    assert reason in " ".join(said.split())


@pytest.mark.parametrize(
    ("module", "arguments", "reason"),
    [
        ("hdrh.histogram", [], "the load tester needs hdrhistogram: make install, or pip install -e '.[load]'"),
        ("matplotlib.figure", ["--picture", "run.png"], "--picture needs matplotlib: pip install matplotlib"),
    ],
)
def test_without_a_library_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, module: str, arguments: list[str], reason: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    exit_code, _, said = load(*SHORT, *arguments)
    assert exit_code == 1
    assert reason in said


def test_it_runs_as_a_module() -> None:
    ran = subprocess.run([sys.executable, "-m", "app.tools.load", "--help"], capture_output=True, text=True, check=True)
    assert "--slo-p99-ms" in ran.stdout
    assert "3 void: more than 0.1%" in " ".join(ran.stdout.split())
