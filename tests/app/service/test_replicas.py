"""Every replica works, and each on one thread."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.service.conftest import Start
from tests.app.service.load import Clients
from tests.app.service.running import wait_until


@pytest.mark.parametrize("replicas", [2, 4])
def test_under_load_each_replica_has_its_share_of_the_rows(start: Start, replicas: int) -> None:
    """F16. Their busy time is told apart too, so that a core which does nothing is seen."""
    service = start(replicas=replicas, null_ms=20).wait_ready()
    names = [f"0.{replica}" for replica in range(replicas)]

    def rows() -> list[float]:
        return [service.total("rows_total", replica=name) for name in names]

    with Clients(service.traffic, 24):
        wait_until(lambda: min(rows()) >= 20)
        wait_until(lambda: min(seen := rows()) >= 0.8 * max(seen))
    wait_until(lambda: sum(rows()) == service.total("rows_total"))  # the last rows end after their clients have left
    assert all(service.total("replica_busy_seconds_total", replica=name) > 0 for name in names)


def test_engines_are_told_to_start_no_threads_of_their_own(start: Start) -> None:
    """F18: the replicas are the threads, as many as there are cores."""
    service = start().wait_ready()
    (worker,) = service.worker_pids
    environment = Path(f"/proc/{worker}/environ").read_bytes().split(b"\0")
    assert {b"OMP_NUM_THREADS=1", b"MKL_NUM_THREADS=1", b"OPENBLAS_NUM_THREADS=1"} <= set(environment)
