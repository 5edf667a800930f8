"""Why cores can't be opened: there is no device, or another process has them, which is named."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from app.neuron_devices import VISIBLE_CORES, Process, discover
from app.neuron_sdk import NeuronSdk


def who_holds(cores: Sequence[int], sdk: NeuronSdk) -> str:
    """A sentence about those of ``cores`` (all, where it is empty); a core belongs to one process until that ends."""
    devices = discover(sdk.cores_per_device)
    if not devices:
        return (
            "there is no Neuron device; on the host load the driver (aws-neuronx-dkms), and give a container "
            "/dev/neuron0 and on (--device)"
        )
    ours = [device for device in devices if not cores or set(cores) & set(device.cores)]
    holders = {
        f"{process} on device {device.number}"
        for device in ours
        for process in device.processes
        if not _is_of_this_service(process)
    }
    if not holders:
        return (
            "the Neuron runtime didn't start; see its log above and dmesg. If another process owns the cores, end it, "
            f"or set {VISIBLE_CORES} to others"
        )
    return f"another process owns them: {', '.join(sorted(holders))}; end it, or set {VISIBLE_CORES} to other cores"


def _is_of_this_service(process: Process) -> bool:
    """This worker or a sibling: a chip may be shared between workers."""
    return process.pid == os.getpid() or _parent(process.pid) == os.getppid()


def _parent(pid: int) -> int | None:
    try:
        # "pid (command) state ppid …", where the command may hold anything.
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return None
