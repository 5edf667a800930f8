"""Rows are compiled in processes of their own over the stand-in SDK; one that fails is explained and ends the rest."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="compiling needs torch")

from models.compiling.neuron.job import Job, make_jobs
from models.compiling.neuron.rows import compile_rows
from models.compiling.order import CompileError
from tests.models.compiling.neuron.test_job import make_encoder
from tests.neuron import SDK

ARGUMENTS = {"inf1": ["--fast-math", "all"], "inf2": ["--target", "inf2", "--auto-cast", "none"]}


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """A machine with both SDKs and no chip: children import from where this process does."""
    monkeypatch.syspath_prepend(str(SDK))
    monkeypatch.setenv("STANDIN_NEURON_STATE", str(tmp_path / "state"))
    return monkeypatch


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., list[Job]]:
    def make(*rows: int, target: str = "inf1") -> list[Job]:
        shapes = [(tokens, tokens // 3) for tokens in rows]
        return make_jobs(
            make_encoder(), shapes, tmp_path / "work", target=target, compiler_args=ARGUMENTS[target], versions={}
        )

    return make


@pytest.mark.parametrize("target", list(ARGUMENTS))
def test_each_row_is_compiled_once_and_then_taken(
    machine: pytest.MonkeyPatch, make: Callable[..., list[Job]], target: str
) -> None:
    said: list[str] = []
    jobs = make(16, 32, target=target)
    compile_rows(jobs, at_once=2, timeout_s=100, tell=said.append)
    assert all(job.is_done() for job in jobs)
    assert {line.partition(",")[0] for line in said if "compiling, log" in line} == {
        "row 16: compiling",
        "row 32: compiling",
    }
    assert [line[:5] for line in said if "compiled in" in line] == ["[1/2]", "[2/2]"]
    said.clear()
    machine.setenv("STANDIN_NEURON_COMPILER", "fail")
    compile_rows(jobs, at_once=1, timeout_s=100, tell=said.append)
    assert said == [f"row {job.tokens}: compiled before, taken from {job.folder}" for job in jobs]


@pytest.mark.parametrize(
    ("compiler", "said"),
    [
        ("killed", "row 16: killed, nearly always for lack of memory"),
        ("fail", "row 16: the compiler ended with status 1"),
    ],
)
def test_a_compiler_that_fails_is_explained(
    machine: pytest.MonkeyPatch, make: Callable[..., list[Job]], compiler: str, said: str
) -> None:
    machine.setenv("STANDIN_NEURON_COMPILER", compiler)
    jobs = make(16)
    with pytest.raises(CompileError, match=said) as raised:
        compile_rows(jobs, at_once=1, timeout_s=100, tell=lambda line: None)
    assert str(jobs[0].log) in str(raised.value)
    assert not jobs[0].is_done()


def test_a_compiler_that_hangs_is_ended_with_all_others(
    machine: pytest.MonkeyPatch, make: Callable[..., list[Job]]
) -> None:
    machine.setenv("STANDIN_NEURON_COMPILER", "slow:600")
    said: list[str] = []
    with pytest.raises(CompileError, match=r"row \d+: not compiled within --compiler-timeout, 0.5 s"):
        compile_rows(jobs := make(16, 32, 48), at_once=2, timeout_s=0.5, tell=said.append)
    assert not any(job.is_done() for job in jobs)
    assert not any(line.startswith("row 48") for line in said)
    processes = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert not [job for job in jobs if job.folder in processes]


def test_a_model_left_to_the_cpu_is_refused(
    monkeypatch: pytest.MonkeyPatch, make: Callable[..., list[Job]], tmp_path: Path
) -> None:
    """As an SDK does when its compiler fails, without an error."""
    (tmp_path / "torch_neuron.py").write_text(
        "import torch\ndef trace(model, example, **options): return torch.jit.trace(model, example)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    jobs = make(16)
    with pytest.raises(CompileError, match="would have left the model to the CPU, in silence") as raised:
        compile_rows(jobs, at_once=1, timeout_s=100, tell=lambda line: None)
    assert "no neuron::forward" in str(raised.value)
    assert not jobs[0].is_done()


def test_a_killed_process_leaves_nothing_half(
    monkeypatch: pytest.MonkeyPatch, make: Callable[..., list[Job]], tmp_path: Path
) -> None:
    (tmp_path / "torch_neuron.py").write_text("import os\ndef trace(*_, **options): os.kill(os.getpid(), 9)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    jobs = make(16)
    with pytest.raises(CompileError, match="lack of memory"):
        compile_rows(jobs, at_once=1, timeout_s=100, tell=lambda line: None)
    assert sorted(path.name for path in Path(jobs[0].folder).iterdir()) == ["compiler.log", "job.json"]
