"""The table of field cases is true, and the long ones can be run by name."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks.field_cases.__main__ import CASES

ROOT = Path(__file__).parent.parent.parent
TABLE = (ROOT / "benchmarks" / "field_cases" / "README.md").read_text(encoding="utf-8")
# Number to long clock, which may be empty.
ROWS = {
    cells[1].strip(): cells[4].strip(" `")
    for line in TABLE.splitlines()
    if re.match(r"\| F\d+ \|", line) and len(cells := line.split("|")) == 6
}


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.field_cases", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


def numbers_in_docstrings() -> set[str]:
    """Of all tests: ``F12`` at the start of a docstring, or in a list there."""
    openings = re.findall(
        r'"""((?:F\d+(?:, )?)+)', "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py"))
    )
    return {number for opening in openings for number in opening.rstrip(", ").split(", ")}


def test_each_case_is_held_by_a_test_or_a_long_clock() -> None:
    assert len(ROWS) == 30
    assert numbers_in_docstrings() <= ROWS.keys()
    assert {number for number, clock in ROWS.items() if not clock} <= numbers_in_docstrings()


def test_each_long_clock_is_one_that_runs() -> None:
    clocks = {number: clock for number, clock in ROWS.items() if clock}
    of_their_own = {clock for clock in clocks.values() if clock.startswith("benchmarks.")}
    assert all(find_spec(clock) for clock in of_their_own)
    assert {number: clock for number, clock in clocks.items() if clock not in of_their_own} == {
        case.number: case.name for case in CASES
    }


def test_help_names_each_with_its_promise() -> None:
    said = " ".join(run("--help").stdout.split())
    for case in CASES:
        assert case.name in said
        assert case.promise in said


def test_a_short_run_says_what_it_found_and_writes_no_result() -> None:
    """On the null target: the connections that idle."""
    results = ROOT / "benchmarks" / "results" / "field_cases" / "keep-alive.json"
    before = results.stat().st_mtime_ns if results.exists() else None
    done = run("keep-alive", "--scale", "0.01")
    assert done.returncode == 0, done.stderr
    assert '"answered": 50' in done.stdout
    assert (results.stat().st_mtime_ns if results.exists() else None) == before


@pytest.mark.parametrize(
    ("arguments", "said"), [(["nothing"], "invalid choice: 'nothing'"), (["alone", "--scale", "2"], "0.01 to 1")]
)
def test_what_there_is_not_is_named(arguments: list[str], said: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert said in done.stderr
