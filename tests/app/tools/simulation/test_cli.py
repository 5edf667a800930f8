"""``query-intent simulate`` on the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from app import cli
from app.bundle import Bundle
from app.settings import Settings
from app.tools.simulation import cli as simulate
from app.tools.simulation.cli import command
from app.tools.simulation.row_times import RowTimes
from app.tools.simulation.table import HEADER
from tests import needs

SHORT = ["--requests", "500"]
SIXTEEN_CORES = ["--cores", "16", "--workers", "4", "--row-ms", "3"]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command, [*SHORT, *arguments])


def figures(path: Path, *arguments: str) -> list[dict[str, Any]]:
    """The results of a run on 16 cores, from its JSON."""
    result = run(*SIXTEEN_CORES, "--out", str(path / "out.json"), *arguments)
    assert result.exit_code == 0, result.output
    found: list[dict[str, Any]] = json.loads((path / "out.json").read_text())["results"]
    return found


class TestASweep:
    def test_it_says_what_is_simulated_then_a_line_for_each_rate_and_up_to_which_the_objective_holds(self) -> None:
        result = run(*SIXTEEN_CORES, "--rate", "1000,16000")
        assert result.exit_code == 0
        what, rows, header, first, second, verdict = result.stdout.splitlines()
        assert what == "4 workers of 4 replicas, a core for each replica, 64 connections"
        assert rows == "ms a row, by its tokens: 3.00 (64)"
        assert header == HEADER
        assert [first.split()[0], second.split()[0]] == ["1,000", "16,000"]
        assert verdict == "99% of the queries are answered within 10 ms up to 16,000/s, of these rates"

    def test_everything_is_in_the_json(self, tmp_path: Path) -> None:
        out = tmp_path / "out.json"
        result = run(*SIXTEEN_CORES, "--rate", "1000:3000:1000", "--seed", "7", "--out", str(out))
        assert result.exit_code == 0
        found = json.loads(out.read_text())
        assert [each["rate"] for each in found["results"]] == [1000, 2000, 3000]
        assert {"p50_ms", "p99_ms", "p99_9_ms", "goodput", "row_fill", "rejected_share"} < set(found["results"][0])
        assert found["deployment"]["workers"] == found["deployment"]["replicas"] == 4
        assert found["rows_ms"] == {"64": 3.0}
        assert (found["arrivals"], found["seed"]) == ("poisson", 7)

    @needs.MATPLOTLIB
    def test_a_picture_is_drawn(self, tmp_path: Path) -> None:
        picture = tmp_path / "sweep.png"
        assert run(*SIXTEEN_CORES, "--rate", "1000,2000", "--picture", str(picture)).exit_code == 0
        assert picture.read_bytes().startswith(b"\x89PNG")

    def test_workers_and_replicas_that_are_not_given_are_those_that_serve_would_run(self) -> None:
        result = run("--cores", "9", "--row-ms", "3", "--rate", "100")
        assert result.stdout.startswith("2 workers of 4 replicas")

    def test_cores_that_are_shared_cost_rows_what_the_event_loops_take(self, tmp_path: Path) -> None:
        arguments = ["--cores", "16", "--rate", "8000", "--request-us", "300"]
        (own,), (shared,) = figures(tmp_path, *arguments), figures(tmp_path, *arguments, "--shared-cores")
        assert shared["p99_ms"] > own["p99_ms"]


class TestTraffic:
    def test_a_trace_is_replayed_at_its_own_rate_or_at_the_rates_asked_for(self, tmp_path: Path) -> None:
        trace = tmp_path / "trace.txt"
        trace.write_text("".join(f"{1700000000 + second / 10}\n" for second in range(101)))
        (own,) = figures(tmp_path, "--replay", str(trace))
        assert (own["queries"], own["rate"]) == (101, pytest.approx(10.1))
        assert [each["rate"] for each in figures(tmp_path, "--replay", str(trace), "--rate", "50,100")] == [50, 100]

    def test_lengths_are_those_of_a_file_of_queries(self, tmp_path: Path) -> None:
        (tmp_path / "queries.csv").write_text("id,q\n1,lamp\n2,lamp\n")
        (found,) = figures(
            tmp_path, "--rate", "10", "--queries", str(tmp_path / "queries.csv"), "--column", "q", "--row-ms", "3:1"
        )
        assert found["row_fill"] == 1.0

    def test_a_trace_that_holds_queries_has_its_own_lengths(self, tmp_path: Path) -> None:
        trace = tmp_path / "trace.csv"
        trace.write_text("time,query\n" + "".join(f"{second},lamp\n" for second in range(100)))
        (found,) = figures(tmp_path, "--replay", str(trace), "--row-ms", "3:1")
        assert found["row_fill"] == 1.0

    def test_bursts_are_another_law(self, tmp_path: Path) -> None:
        (calm,) = figures(tmp_path, "--rate", "16000", "--requests", "16000")
        (bursty,) = figures(tmp_path, "--rate", "16000", "--requests", "16000", "--arrivals", "bursty")
        assert bursty["p99_ms"] > 2 * calm["p99_ms"]


class TestTheRowsOfABundle:
    @pytest.fixture
    def measured(self, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
        """What was measured: timing an engine is tested by itself."""
        calls: list[tuple[Any, ...]] = []

        def measure(bundle: Any, target: str, *, replicas: int) -> RowTimes:
            calls.append((bundle.name, target, replicas))
            return RowTimes.stated("8:1,48:4")

        monkeypatch.setattr(simulate, "measure", measure)
        monkeypatch.setattr(simulate, "cpu_budget", lambda: 2)
        return calls

    def test_without_stated_rows_those_of_the_shipped_one_are_timed_here(self, measured: list[tuple[Any, ...]]) -> None:
        result = run("--cores", "2", "--shared-cores", "--rate", "100")
        assert result.exit_code == 0, result.output
        shipped = Bundle(Path(Settings().bundle)).name
        assert measured == [(shipped, "auto", 2)]
        assert "ms a row, by its tokens: 1.00 (8), 4.00 (48)" in result.stdout
        assert f"timing rows of {shipped}" in result.stderr

    def test_no_more_copies_are_loaded_than_this_machine_has_cpus(
        self, measured: list[tuple[Any, ...]], tiny_bundle: Path
    ) -> None:
        result = run("--cores", "16", "--rate", "100", "--bundle", str(tiny_bundle), "--target", "torch")
        assert result.exit_code == 0, result.output
        assert measured == [("tiny@1", "torch", 2)]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "give --rate, or --replay a file that has one"),
        (["--rate", "fast"], "'fast' is neither RATE, RATE,RATE,… nor FROM:TO:STEP"),
        (["--rate", "100", "--row-ms", "0"], "'0': a row holds at least 3 tokens"),
        (["--rate", "100", "--tokens", "1"], "'1': queries have 3 to 512 tokens"),
        (["--rate", "100", "--tokens", "9", "--queries", __file__], "give --tokens or --queries, not both"),
        (["--rate", "100", "--target", "cpu"], "with --row-ms no bundle is timed"),
        (["--rate", "100", "--bundle", "models"], "with --row-ms no bundle is timed"),
        (["--rate", "100", "--column", "q"], "--column is for a file"),
        (["--rate", "100", "--replicas", "5"], "4 x 5 replicas on 16 cores: at most a replica a core"),
        (["--rate", "100", "--shared-cores", "--workers", "17"], "17 workers on 16 shared cores"),
        (["--rate", "100", "--replay", __file__], "don't know .py"),
        (["--rate", "100", "--queries", __file__], "don't know .py"),
        (["--rate", "100", "--picture", "sweep.txt"], "sweep.txt ends in none of .png, .svg, .pdf"),
        (["--rate", "100", "--out", "/nonexistent/out.json"], "/nonexistent is no directory"),
        (["--rate", "100", "--replay", __file__, "--arrivals", "bursty"], "give --arrivals or --replay, not both"),
        (["--rate", "100", "--request-us", "nan"], "'--request-us': nan is no finite number"),
        (["--rate", "100", "--requests", "99"], "--requests"),
        (["--rate", "100", "--connections", "0"], "--connections"),
    ],
)
def test_what_can_not_be_simulated_is_refused_with_its_name(arguments: list[str], reason: str) -> None:
    result = run(*SIXTEEN_CORES, *arguments)
    assert result.exit_code == 2
    assert reason in result.stderr


def test_a_trace_in_which_no_time_passes_is_refused(tmp_path: Path) -> None:
    (tmp_path / "trace.txt").write_text("5\n5\n")
    result = run(*SIXTEEN_CORES, "--replay", str(tmp_path / "trace.txt"))
    assert result.exit_code == 2
    assert "no time passes between the arrivals" in result.stderr


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulate.importlib.util, "find_spec", lambda _name: None)
    result = run(*SIXTEEN_CORES, "--rate", "100", "--picture", "sweep.png")
    assert result.exit_code == 1
    assert "pip install matplotlib" in result.stderr


class TestHelp:
    def test_its_first_example_prints_what_it_shows(self) -> None:
        shown = CliRunner().invoke(cli.cli, ["simulate", "--help"]).stdout
        lines = [each.strip() for each in shown.splitlines()]
        example = next(each for each in lines if each.startswith("query-intent simulate --cores 16"))
        printed = CliRunner().invoke(cli.cli, example.split()[1:]).stdout.splitlines()
        table = printed[2:]
        start = lines.index(example) + 1
        assert lines[start : start + len(table)] == [each.strip() for each in table]

    def test_it_loads_no_drawing_and_no_engine(self) -> None:
        import subprocess

        code = (
            "import sys; from app.tools.simulation.cli import command; command(['--help'], standalone_mode=False); "
            "sys.exit(', '.join({'matplotlib', 'openvino', 'torch', 'fastapi'} & set(sys.modules)) or 0)"
        )
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert (ended.returncode, ended.stderr) == (0, "")
