"""How the supervisor shares a machine out."""

from __future__ import annotations

import pytest

from app.supervisor import share_out


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
