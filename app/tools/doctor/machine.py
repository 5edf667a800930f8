"""What any target needs of the machine."""

from __future__ import annotations

import re
import resource
import shutil
from pathlib import Path

from app.cpu_budget import cpu_budget
from app.tools.doctor.check import Check, failed, note, ok, warning
from app.tools.doctor.host import Host

# What int8 matmuls want, the best first: a row takes four to five times as long on AVX2 as on AVX-512 VNNI.
INT8_INSTRUCTIONS = {
    "amx_int8": "AMX",
    "avx512_vnni": "AVX-512 VNNI",
    "avx_vnni": "AVX VNNI",
    "asimddp": "dot product (Arm)",
}
SLOW_INSTRUCTIONS = {"avx2": "AVX2", "asimd": "NEON"}
MIN_OPEN_FILES = 1024
MIN_SHARED_BYTES = 16 << 20  # the status board and the workers' metrics


def computer(host: Host) -> Check:
    """What it is: the first thing to know about numbers that somebody sends back."""
    cpuinfo = Host.read(host.proc / "cpuinfo")
    model = re.search(r"^model name\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    memory = re.search(r"^MemTotal:\s*(\d+) kB", Host.read(host.proc / "meminfo"), re.MULTILINE)
    gib = round(int(memory[1]) / 2**20, 1) if memory else None
    instance = Host.read(host.sysfs / "devices/virtual/dmi/id/product_name") or "unknown machine"
    cpus = cpu_budget(host.sysfs / "fs/cgroup")
    name = model[1] if model else "unknown CPU"
    python = ".".join(map(str, host.python))
    return note(
        "machine",
        f"{instance}, {name}, {cpus} CPUs to use, {gib or '?'} GiB, Python {python}",
        instance=instance,
        cpu=name,
        cpus=cpus,
        memory_gib=gib,
        python=python,
        kernel=Host.read(host.proc / "sys/kernel/osrelease"),
    )


def instruction_set(host: Host) -> Check:
    flags = re.search(r"^(?:flags|Features)\s*:\s*(.+)$", Host.read(host.proc / "cpuinfo"), re.MULTILINE)
    there = set(flags[1].split()) if flags else set()
    if fast := [name for flag, name in INT8_INSTRUCTIONS.items() if flag in there]:
        return ok("instruction set", f"int8 runs on {fast[0]}", int8=fast)
    slow = next((name for flag, name in SLOW_INSTRUCTIONS.items() if flag in there), "neither AVX2 nor NEON")
    return warning(
        "instruction set",
        f"{slow} only: a row takes several times as long as on AVX-512 VNNI",
        "take a newer kind of instance where the latency table below is too slow",
        int8=[],
    )


def open_files(limit: int | None = None) -> Check:
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0] if limit is None else limit
    if limit in (-1, resource.RLIM_INFINITY) or limit > MIN_OPEN_FILES:
        return ok("open files", f"a process may have {'any number' if limit < 0 else limit} open", limit=limit)
    return warning(
        "open files",
        f"a process may have {limit} open, and a connection is one",
        "raise it: ulimit -n 65536, or ulimits (nofile) in the ECS task definition",
        limit=limit,
    )


def shared_memory(path: Path = Path("/dev/shm")) -> Check:
    try:
        free = shutil.disk_usage(path).free
    except OSError:
        return warning(
            "shared memory", f"there is no {path}: metrics go to a disk", f"give the container {path} (--shm-size=64m)"
        )
    if free < MIN_SHARED_BYTES:
        return failed(
            "shared memory",
            f"{path} has {free >> 20} MiB left, the service's board and metrics want {MIN_SHARED_BYTES >> 20}",
            "free some, or give the container more: --shm-size=64m, sharedMemorySize in the ECS task definition",
            free_bytes=free,
        )
    return ok("shared memory", f"{free >> 20} MiB free", free_bytes=free)
