"""Several row lengths compiled at once, each in a process of its own that is ended when it takes too long."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from models.compiling.neuron.failures import explain
from models.compiling.neuron.job import Job
from models.compiling.order import CompileError

_LOOK_S = 0.1
_STILL_RUNNING_S = 60.0  # between two lines that say what is still compiling

Tell = Callable[[str], None]


class _Run(NamedTuple):
    job: Job
    process: subprocess.Popen[bytes]
    started: float

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started


def compile_rows(jobs: Sequence[Job], *, at_once: int, timeout_s: float, tell: Tell) -> None:
    """Compile what isn't there yet, ``at_once`` at a time, and say how it goes.

    Raises ``CompileError`` with the cause of the first that fails, and ends the others; what was finished by then is
    taken next time.
    """
    waiting: deque[Job] = deque()
    for job in jobs:
        if job.is_done():
            tell(f"row {job.tokens}: compiled before, taken from {job.folder}")
        else:
            waiting.append(job)
    running: list[_Run] = []
    count, of, told = 0, len(waiting), time.monotonic()
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                running.append(_start(waiting.popleft(), tell))
            time.sleep(_LOOK_S)
            for run in running[:]:
                if _has_ended(run, timeout_s):
                    running.remove(run)
                    count += 1
                    size = run.job.artefact.stat().st_size / 1e6
                    tell(f"[{count}/{of}] row {run.job.tokens}: compiled in {run.seconds:.0f} s, {size:.1f} MB")
            if time.monotonic() - told > _STILL_RUNNING_S:
                told = time.monotonic()
                rows = ", ".join(f"{run.job.tokens} ({run.seconds:.0f} s)" for run in running)
                tell(f"[{count}/{of}] still compiling: rows {rows}")
    finally:  # also when somebody presses Ctrl-C
        for run in running:
            _end(run.process)


def _start(job: Job, tell: Tell) -> _Run:
    command = [sys.executable, "-m", "models.compiling.neuron.trace_row", str(job.write())]
    # What this process imports from, its children do too.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    tell(f"row {job.tokens}: compiling, log in {job.log}")
    with job.log.open("wb") as log:
        # A session of its own, so that the compiler that it starts ends with it.
        process = subprocess.Popen(
            command, stdout=log, stderr=subprocess.STDOUT, env=environment, start_new_session=True
        )
    return _Run(job, process, time.monotonic())


def _has_ended(run: _Run, timeout_s: float) -> bool:
    """Whether the artefact is there. Raises ``CompileError`` when it won't be."""
    status = run.process.poll()
    job = run.job
    if status is None and run.seconds > timeout_s:
        raise CompileError(
            f"row {job.tokens}: not compiled within --compiler-timeout, {timeout_s:g} s; a row of BERT-base takes "
            f"minutes, so look into {job.log} before giving it more"
        )
    if status is not None and (status != 0 or not job.is_done()):
        _end(run.process)  # what it left running
        cause = explain(status, job.log.read_text(encoding="utf-8", errors="replace"))
        raise CompileError(f"row {job.tokens}: {cause}\n  the whole log: {job.log}")
    return status is not None


def _end(process: subprocess.Popen[bytes]) -> None:
    """The process and all that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
