"""Another model on Inferentia, over the stand-in SDK: a core has one owner, so workers give theirs up one by one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the Neuron SDKs are extensions of torch")

from app.bundle import Bundle, write_manifest
from tests.app.service.load import Clients
from tests.app.service.running import is_alive, wait_until
from tests.app.service.test_neuron import Start
from tests.app.service.test_neuron import bundle as bundle
from tests.app.service.test_neuron import start as start
from tests.app.service.test_supervision import Watch
from tests.app.service.test_swap import models, swap
from tests.neuron import NeuronHost
from tests.tiny_bundle import rewrite

Host = Callable[..., NeuronHost]


@pytest.fixture
def own(bundle: Path, tmp_path: Path) -> Path:
    return shutil.copytree(bundle, tmp_path / "own")


def release(bundle: Path, version: str) -> None:
    write_manifest(bundle, Bundle(bundle).manifest.model_copy(update={"version": version}))


def test_workers_are_replaced_one_after_the_other_and_no_request_is_lost(
    start: Start, neuron_host: Host, own: Path
) -> None:
    host = neuron_host("inf1.xlarge", row_ms="16:3,32:5")
    service = start(host, bundle=own, workers=2, replicas=2, keep_alive_s=1).wait_ready()
    before = service.worker_pids
    release(own, "2")

    with Clients(service.traffic, 8) as clients, Watch(service) as watch:
        record = swap(service)
        answered = clients.statuses[200]
        wait_until(lambda: clients.statuses[200] >= answered + 50)
        clients.stop()

    assert (record["result"], record["problem"]) == ("done", "")
    assert set(clients.statuses) == {200}
    assert (clients.broken, clients.hung) == (0, 0)
    assert set(watch.readiness) == {200}
    assert models(service) == {"tiny@2"}
    after = service.worker_pids[2:]
    assert not any(map(is_alive, before))
    assert host.owners() == {0: after[0], 1: after[0], 2: after[1], 3: after[1]}


def test_a_golden_answer_that_a_core_does_not_give_brings_the_old_model_back_on_every_core(
    start: Start, neuron_host: Host, own: Path
) -> None:
    host = neuron_host("inf1.xlarge", row_ms="16:3,32:5")
    service = start(host, bundle=own, workers=2, replicas=2, keep_alive_s=1).wait_ready()
    golden = json.loads((own / "bundle.json").read_text())["golden"]
    golden[0]["probabilities"].reverse()
    rewrite(own, golden=golden, version="2")

    with Clients(service.traffic, 4) as clients:
        record = swap(service)
        clients.stop()

    assert (record["result"], record["level"]) == ("rolled back", "ERROR")
    assert f"golden query '{golden[0]['query']}'" in " ".join(service.plain_lines)
    assert set(clients.statuses) == {200}
    assert clients.broken == 0
    assert models(service) == {"tiny@1"}
    assert len(host.owners()) == 4
    assert service.ops("/readyz").json()["replicas_ready"] == 4


@pytest.mark.parametrize(("workers", "quorum"), [(1, 0.5), (2, 0.6)])
def test_a_swap_that_would_leave_too_few_replicas_is_refused(
    start: Start, neuron_host: Host, own: Path, workers: int, quorum: float
) -> None:
    service = start(neuron_host("inf1.xlarge"), bundle=own, workers=workers, replicas=1, quorum=quorum).wait_ready()
    release(own, "2")

    record = swap(service)

    assert record["result"] == "refused"
    assert record["problem"].endswith("; start a new instance instead")
    assert models(service) == {"tiny@1"}
    assert service.worker_pids == service.worker_pids[:workers]
