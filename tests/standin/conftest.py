"""Compiled rows, and programs that run them. A program says what a test is about in its last line, in JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.neuron import SDK, NeuronHost, make_neuron_bundle

# Before every program. PATH is a compiled row of 16 tokens.
PRELUDE = """
import json, os, sys, threading, time, torch, torch_neuron
from torch_neuron.experimental import neuron_cores_context, multicore_context
PATH = sys.argv[1]
torch.manual_seed(0)
ROW = (torch.rand(1, 16, 16), torch.zeros(1, 1, 16, 16), torch.rand(5, 16))
def load(core=-1, count=-1):
    with neuron_cores_context(core, count):
        return torch.jit.load(PATH)
def error_of(call, *arguments, **keywords):
    try:
        call(*arguments, **keywords)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
def say(*things):
    print(json.dumps(things if len(things) > 1 else things[0]), flush=True)
"""
# Importing torch takes seconds, so one process has done it and forks for each program: nothing of the runtime is
# started before, so that is safe.
_FORKS = """
import traceback
while line := sys.stdin.readline():
    program, environment, output = json.loads(line)
    if (child := os.fork()) == 0:
        for descriptor, path in enumerate(output, 1):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), descriptor)
        os.environ.clear()
        os.environ.update(environment)
        status = 1
        try:
            exec(program)
            status = 0
        except Exception:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    say(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""

Run = Callable[..., Any]


def holding(host: NeuronHost, row: str, **env: str) -> subprocess.Popen[str]:
    """A process that has loaded the row and waits for its standard input to end."""
    process = subprocess.Popen(
        [sys.executable, "-c", PRELUDE + "module = torch.jit.load(PATH); say('loaded'); sys.stdin.read()", row],
        env=host.env | env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    assert process.stdout.readline() == '"loaded"\n'
    return process


@pytest.fixture(scope="session")
def inf1_row(tmp_path_factory: pytest.TempPathFactory) -> str:
    bundle = make_neuron_bundle(tmp_path_factory.mktemp("neuron") / "tiny", buckets=[16])
    return str(bundle / "inf1" / "row_16.pt")


@pytest.fixture(scope="session")
def forks(inf1_row: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", PRELUDE + _FORKS, inf1_row],
        env={"PYTHONPATH": str(SDK)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.kill()


@pytest.fixture
def run(forks: subprocess.Popen[str], tmp_path: Path) -> Run:
    """Run a program in a process of its own on a host: what it said last, or everything if it failed."""

    def run_on(host: NeuronHost, program: str, **env: str) -> Any:
        output = [tmp_path / "stdout", tmp_path / "stderr"]
        for path in output:
            path.unlink(missing_ok=True)
        assert forks.stdin
        assert forks.stdout
        print(json.dumps([program, host.env | env, list(map(str, output))]), file=forks.stdin, flush=True)
        status = forks.stdout.readline()
        assert status == "0\n", output[1].read_text()
        return json.loads(output[0].read_text().splitlines()[-1])

    return run_on
