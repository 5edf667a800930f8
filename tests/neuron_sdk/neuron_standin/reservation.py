"""Which cores a process has: reserved once, from its environment, and given back by the kernel when it ends."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from neuron_standin.settings import Settings
from neuron_standin.status import not_initialized

_COMPONENT = "NRT:nrt_allocate_neuron_cores"


class Reservation:
    """Cores by their number on the machine. A lock on a file is the ownership, so a killed process has none."""

    def __init__(self, cores: list[int], files: list[IO[str]]) -> None:
        self.cores = cores
        self._files = files  # open as long as the process lives


def reserve(settings: Settings) -> Reservation:
    """What NEURON_RT_VISIBLE_CORES or else NEURON_RT_NUM_CORES asks for, or all. RuntimeError if it isn't free."""
    if not settings.cores:
        raise not_initialized("TDRV:tdrv_get_dev_info", "No neuron device available")
    with _alone(settings.state):
        visible = os.environ.get("NEURON_RT_VISIBLE_CORES")
        if visible:
            wanted = visible_cores(visible)
            return _take(settings, wanted, f"nc{wanted[0]}-nc{wanted[-1]}")
        number = int(os.environ.get("NEURON_RT_NUM_CORES") or 0) or settings.cores
        free = [core for core in range(settings.cores) if owner(settings.state, core) is None]
        for first in free:
            run = list(range(first, first + number))
            if set(run) <= set(free):
                return _take(settings, run, str(number))
        why = "Neuron cores are not contiguous" if len(free) >= number else "NeuronCore(s) not available"
        raise not_initialized(_COMPONENT, f"{why} - Requested:{number} Available:{len(free)}")


def visible_cores(text: str) -> list[int]:
    """``3``, ``0-3`` or ``1,2``."""
    cores: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        cores += range(int(first), int(last or first) + 1)
    return cores


def owner(state: Path, core: int) -> int | None:
    """The process that has a core of this machine, if one has."""
    with contextlib.suppress(FileNotFoundError), _path(state, core).open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return int(json.loads(file.read())["pid"])
    return None


def owner_command(state: Path, core: int) -> str:
    return str(json.loads(_path(state, core).read_text())["command"])


def _take(settings: Settings, cores: list[int], asked: str) -> Reservation:
    free = [core for core in cores if core < settings.cores and owner(settings.state, core) is None]
    if free != cores:
        message = f"NeuronCore(s) not available - Requested:{asked} Available:{len(free)}"
        raise not_initialized(_COMPONENT, message)
    return Reservation(cores, [_lock(_path(settings.state, core)) for core in cores])


def _lock(path: Path) -> IO[str]:
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.open("a+")
    fcntl.flock(file, fcntl.LOCK_EX)  # nobody has it; somebody may be looking who has it
    file.truncate(0)
    file.write(json.dumps({"pid": os.getpid(), "command": " ".join(sys.argv[:2])}))
    file.flush()
    return file


@contextlib.contextmanager
def _alone(state: Path) -> Iterator[None]:
    """One process at a time looks for free cores and takes them."""
    state.mkdir(parents=True, exist_ok=True)
    with (state / "allocation").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _path(state: Path, core: int) -> Path:
    return state / "cores" / str(core)
