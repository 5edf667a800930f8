"""How many CPUs this process may really use, in a container rarely how many the host has, and who gets them."""

from __future__ import annotations

import os
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")
CORES_PER_WORKER = 4


def cpu_budget(cgroup: Path = CGROUP) -> int:
    """Whole CPUs: the smaller of the affinity mask and the cgroup's quota (v2, else v1), at least 1.

    A thread more than the quota allows is throttled for the rest of each 100 ms period, which is a tail of its own.
    """
    available = len(os.sched_getaffinity(0))
    quota = _quota_v2(cgroup / "cpu.max") or _quota_v1(cgroup / "cpu")
    return max(1, min(available, int(quota)) if quota else available)


def share_out(cpus: int, *, workers: int, replicas: int) -> tuple[int, int]:
    """How many workers, and replicas in each, on so many CPUs. What the settings leave at 0 is decided here."""
    workers = workers or max(1, cpus // CORES_PER_WORKER)
    return workers, replicas or max(1, cpus // workers)


def _quota_v2(path: Path) -> float | None:
    """CPUs allowed by ``cpu.max``: "200000 100000" is 2.0, "max 100000" is no limit."""
    try:
        quota, period = path.read_text().split()
    except (OSError, ValueError):
        return None
    return None if quota == "max" else int(quota) / int(period)


def _quota_v1(folder: Path) -> float | None:
    try:
        quota = int((folder / "cpu.cfs_quota_us").read_text())
        period = int((folder / "cpu.cfs_period_us").read_text())
    except (OSError, ValueError):
        return None
    return quota / period if quota > 0 else None
