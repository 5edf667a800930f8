"""How many CPUs this process may really use, and how workers and replicas share them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.cpu_budget import cpu_budget, share_out


@pytest.fixture(autouse=True)
def eight_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(8)))


def v1(cgroup: Path, quota: str, period: str) -> None:
    (cgroup / "cpu").mkdir()
    (cgroup / "cpu" / "cpu.cfs_quota_us").write_text(quota)
    (cgroup / "cpu" / "cpu.cfs_period_us").write_text(period)


def test_without_a_quota_it_is_the_affinity_mask(tmp_path: Path) -> None:
    assert cpu_budget(tmp_path) == 8


@pytest.mark.parametrize(
    ("content", "budget"),
    [
        ("200000 100000\n", 2),
        ("250000 100000\n", 2),  # a thread more would be throttled
        ("50000 100000\n", 1),
        ("800000 100000\n", 8),
        ("1600000 100000\n", 8),
        ("max 100000\n", 8),
        ("nonsense\n", 8),
        ("", 8),
    ],
)
def test_the_quota_of_cgroup_v2_bounds_it(tmp_path: Path, content: str, budget: int) -> None:
    """F19."""
    (tmp_path / "cpu.max").write_text(content)
    assert cpu_budget(tmp_path) == budget


@pytest.mark.parametrize(
    ("quota", "budget"), [("300000", 3), ("399999", 3), ("10000", 1), ("-1", 8), ("0", 8), ("nonsense", 8)]
)
def test_so_does_that_of_cgroup_v1(tmp_path: Path, quota: str, budget: int) -> None:
    v1(tmp_path, quota, "100000")
    assert cpu_budget(tmp_path) == budget


def test_v2_is_believed_before_v1(tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text("200000 100000")
    v1(tmp_path, "500000", "100000")
    assert cpu_budget(tmp_path) == 2


def test_an_affinity_mask_smaller_than_the_quota_bounds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {3})
    (tmp_path / "cpu.max").write_text("200000 100000")
    assert cpu_budget(tmp_path) == 1


@pytest.mark.parametrize(("cpus", "shared"), [(1, (1, 1)), (2, (1, 2)), (3, (1, 3)), (4, (1, 4)), (7, (1, 7))])
def test_a_small_machine_runs_one_worker_with_a_replica_a_cpu(cpus: int, shared: tuple[int, int]) -> None:
    assert share_out(cpus, workers=0, replicas=0) == shared


@pytest.mark.parametrize(("cpus", "shared"), [(8, (2, 4)), (15, (3, 5)), (16, (4, 4)), (64, (16, 4))])
def test_a_large_one_runs_a_worker_for_every_four_cpus(cpus: int, shared: tuple[int, int]) -> None:
    assert share_out(cpus, workers=0, replicas=0) == shared


@pytest.mark.parametrize("cpus", range(1, 65))
def test_there_are_never_more_replicas_than_cpus(cpus: int) -> None:
    """F19: a thread more than the quota allows is throttled."""
    workers, replicas = share_out(cpus, workers=0, replicas=0)

    assert workers * replicas <= cpus


@pytest.mark.parametrize(
    ("workers", "replicas", "shared"), [(2, 0, (2, 1)), (3, 0, (3, 1)), (0, 5, (1, 5)), (2, 3, (2, 3))]
)
def test_what_was_asked_for_is_what_runs(workers: int, replicas: int, shared: tuple[int, int]) -> None:
    assert share_out(2, workers=workers, replicas=replicas) == shared
