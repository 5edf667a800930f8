"""Which NeuronCores this machine, or this container, has: asked of ``neuron-ls``, else counted in ``/dev``.

Core numbers are the machine's own: chip d of c cores has d × c and on, also in a container that sees that chip alone.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from app.errors import SettingsError

DEV = Path("/dev")
SYSFS = Path("/sys/devices/virtual/neuron_device")
TOOLS = Path("/opt/aws/neuron/bin")  # often not on PATH
NEURON_LS_TIMEOUT_S = 10.0
VISIBLE_CORES = "NEURON_RT_VISIBLE_CORES"
NUM_CORES = "NEURON_RT_NUM_CORES"


class Process(NamedTuple):
    """One that has opened a device. Which of its cores it owns isn't known."""

    pid: int
    command: str

    def __str__(self) -> str:
        return f"pid {self.pid} ({self.command})" if self.command else f"pid {self.pid}"


class Device(NamedTuple):
    """A chip with its cores' numbers; ``logical`` where several physical cores make one, as on Trainium 2."""

    number: int
    cores: tuple[int, ...]
    processes: tuple[Process, ...] = ()
    logical: bool = False


def discover(cores_per_device: int, *, dev: Path = DEV, sysfs: Path = SYSFS) -> list[Device]:
    """The devices, by number; an empty list where there is none. ``cores_per_device`` is for where nothing tells."""
    if (listed := _neuron_ls()) is not None:
        return [device for device in map(_device, listed) if device.cores]
    matches = (re.fullmatch(r"neuron(\d+)", path.name) for path in _entries(dev))
    indices = sorted(int(match[1]) for match in matches if match)
    return [Device(index, _cores(index, _count(sysfs, index) or cores_per_device)) for index in indices]


def visible_cores(devices: Sequence[Device], environ: Mapping[str, str]) -> list[int]:
    """The cores that the environment leaves of those that are there, rising.

    Raises ``SettingsError`` for a list that can't be read or that names a core which isn't there.
    """
    there = sorted(core for device in devices for core in device.cores)
    if text := environ.get(VISIBLE_CORES):
        wanted = parse_cores(text)
        if missing := [core for core in wanted if core not in there]:
            raise SettingsError(
                f"{VISIBLE_CORES}={text}: there is no NeuronCore {format_cores(missing)}, only "
                f"{format_cores(there) or 'none'}"
            )
        return wanted
    if text := environ.get(NUM_CORES):
        if not text.isdigit() or int(text) > len(there):
            raise SettingsError(f"{NUM_CORES}={text}: must be a number from 0 (all) to {len(there)}, which are there")
        return there[: int(text) or None]
    return there


def parse_cores(text: str) -> list[int]:
    """``0-3,6`` → [0, 1, 2, 3, 6]. Raises ``SettingsError``."""
    cores: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", part)
        if match is None or (match[2] is not None and int(match[2]) < int(match[1])):
            raise SettingsError(f"{VISIBLE_CORES}={text}: must be core numbers and ranges, such as 0-3")
        cores.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return sorted(cores)


def format_cores(cores: Sequence[int]) -> str:
    """[0, 1, 2, 3, 6] → ``0-3,6``: ranges wherever they are some, since that is the documented form."""
    parts: list[str] = []
    start = 0
    for place, core in enumerate(cores):
        if place + 1 == len(cores) or cores[place + 1] != core + 1:
            parts.append(str(core) if place == start else f"{cores[start]}-{core}")
            start = place + 1
    return ",".join(parts)


def _neuron_ls() -> list[dict[str, Any]] | None:
    """What ``neuron-ls -j`` lists; None where the tool isn't there or says nothing that can be read."""
    command = shutil.which("neuron-ls") or shutil.which("neuron-ls", path=str(TOOLS))
    if command is None:
        return None
    try:
        done = subprocess.run([command, "-j"], capture_output=True, text=True, timeout=NEURON_LS_TIMEOUT_S, check=False)
        listed = json.loads(done.stdout or "[]")
    except (OSError, subprocess.TimeoutExpired, json.JSONDecodeError):
        return None
    return [entry for entry in listed if isinstance(entry, dict)] or None if isinstance(listed, list) else None


def _device(entry: Mapping[str, Any]) -> Device:
    """An object of ``neuron-ls -j``, of whose members older tools leave out some and newer ones set others to null."""
    index, count = int(entry.get("neuron_device") or 0), int(entry.get("nc_count") or 0)
    ids = entry.get("neuroncore_ids")
    cores = tuple(map(int, ids)) if ids else _cores(index, count)
    processes = tuple(
        Process(int(process["pid"]), str(process.get("command") or ""))
        for process in entry.get("neuron_processes") or ()
        if process.get("pid")
    )
    return Device(index, cores, processes, logical=bool(entry.get("logical_neuroncore_config")))


def _cores(index: int, count: int) -> tuple[int, ...]:
    return tuple(range(index * count, (index + 1) * count))


def _count(sysfs: Path, index: int) -> int | None:
    try:
        return int((sysfs / f"neuron{index}" / "core_count").read_text())
    except (OSError, ValueError):
        return None


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []
