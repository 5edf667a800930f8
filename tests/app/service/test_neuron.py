"""The service on Inferentia, over the stand-in SDK: real supervisor, real workers, each with its slice of the cores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the Neuron SDKs are extensions of torch")

from tests.app.service.load import Clients
from tests.app.service.running import RunningService, wait_until
from tests.neuron import NeuronHost, make_neuron_bundle

Start = Callable[..., RunningService]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_neuron_bundle(tmp_path_factory.mktemp("neuron") / "tiny")


@pytest.fixture
def start(tmp_path: Path, bundle: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Start a service on a host, with whatever workers and replicas its devices suggest."""
    services: list[RunningService] = []

    def start_on(host: NeuronHost, **settings: object) -> RunningService:
        for name, value in host.env.items():
            monkeypatch.setenv(name, value)
        chosen = {"bundle": bundle, "target": "auto", "workers": 0, "replicas": 0, "fallback": "off"} | settings
        services.append(RunningService(tmp_path / f"service-{len(services)}", **chosen))
        return services[-1]

    yield start_on
    for service in services:
        service.kill()


def ready(service: RunningService) -> int:
    return int(service.ops("/readyz").json()["replicas_ready"])


def test_an_inf1_6xlarge_serves_on_16_cores_in_4_workers_and_goes_on_when_one_core_fails(
    start: Start, neuron_host: Callable[..., NeuronHost]
) -> None:
    host = neuron_host("inf1.6xlarge", row_ms="16:3,32:5")
    service = start(host, timeout_ms=10_000).wait_ready()
    assert service.ops("/readyz").json() == {
        "ready": True,
        "reason": "",
        "replicas_ready": 16,
        "replicas": 16,
        "replicas_out": [],
    }
    pids = service.worker_pids
    assert host.owners() == {core: pids[core // 4] for core in range(16)}  # a chip a worker
    model = service.get("/v1/model").json()
    assert (model["target"]["target"], model["settings"]["workers"], model["settings"]["replicas"]) == ("inf1", 4, 4)

    with Clients(service.traffic, 24) as clients:
        busiest, *_ = wait_until(lambda: [core for core in range(16) if host.counters(core)["completed"] > 60])
        host.break_core(busiest, "1004")
        wait_until(lambda: ready(service) == 15)
        answered = clients.statuses[200]
        wait_until(lambda: clients.statuses[200] >= answered + 100)

    assert set(clients.statuses) == {200}
    assert (clients.broken, clients.hung) == (0, 0)
    replica = f"{busiest // 4}.{busiest % 4}"
    readiness = service.ops("/readyz")
    assert (readiness.status, readiness.json()["replicas_out"]) == (200, [replica])
    assert service.worker_pids == pids
    wait_until(lambda: service.total("core_faults_total", replica=replica, fault="NRT_EXEC_COMPLETED_WITH_ERR") == 1)
    assert service.total("core_faults_total") == 1
    (failed,) = [record for record in service.records if record["message"].startswith("core failed: ")]
    assert failed["message"].startswith(f"core failed: NeuronCore {busiest}: status 1004 ")


def test_a_core_that_is_broken_for_good_is_the_operators_and_stays_out_of_a_worker_that_starts_anew(
    start: Start, neuron_host: Callable[..., NeuronHost]
) -> None:
    host = neuron_host("inf1.xlarge", row_ms="16:3,32:5")
    service = start(host, workers=2, replicas=2, timeout_ms=10_000).wait_ready()
    with Clients(service.traffic, 8) as clients:
        wait_until(lambda: host.counters(2)["completed"] > 20 and host.counters(3)["completed"] > 20)
        host.break_core(3, "6")
        wait_until(lambda: ready(service) == 3)
        host.break_core(2, "1")  # of which only a new process is said to help
        wait_until(lambda: len(service.worker_pids) == 3)
        host.mend_core(2)
        wait_until(lambda: ready(service) == 3)
        clients.stop()

    assert set(clients.statuses) <= {200, 503}  # 503: between its last core and its end
    assert clients.hung == 0
    assert any("NeuronCore 3" in line["message"] and "REPLACE THIS HOST" in line["message"] for line in service.records)
    assert service.records_of("2 of 2 replicas are lost; draining, to start anew")
    assert [record["index"] for record in service.records_of("worker started")] == [0, 1, 1]
    assert any(line["message"].startswith("a replica stays out: ") for line in service.records)
    assert set(host.owners().values()) == {service.worker_pids[0], service.worker_pids[2]}


def test_the_operations_port_tells_how_busy_each_core_is(start: Start, neuron_host: Callable[..., NeuronHost]) -> None:
    """F16. From AWS's neuron-monitor, which the supervisor keeps running."""
    service = start(neuron_host("inf1.xlarge", row_ms="16:3,32:5")).wait_ready()
    with Clients(service.traffic, 8):
        wait_until(lambda: all(service.total("neuron_core_utilization_ratio", core=str(core)) > 0 for core in range(4)))
        assert service.total("neuron_monitor_up") == 1
    assert service.total("neuron_devices") == 1


def test_data_parallel_answers_with_one_replica_on_all_cores(
    start: Start, neuron_host: Callable[..., NeuronHost], tmp_path: Path
) -> None:
    host = neuron_host("inf1.xlarge", row_ms="16:3,32:5")
    single = make_neuron_bundle(tmp_path / "single", one_query_a_row=True)
    service = start(host, bundle=single, placement="data-parallel").wait_ready()
    assert service.ops("/readyz").json()["replicas"] == 1
    queries = ["red shoes", "where is my order", "usb c cable", "how do i return shoes", "a", "cancel"]
    listed = service.classify_list(queries, timeout_ms=10_000).json()["results"]
    for query, result in zip(queries, listed, strict=True):
        alone = service.classify(query, timeout_ms=10_000).json()
        assert (result["query"], result["intents"]) == (query, alone["intents"])
    completed = [host.counters(core)["completed"] for core in range(4)]
    assert min(completed) == max(completed) > 0


@pytest.mark.parametrize(
    ("instance", "settings", "line"),
    [
        (None, {"target": "inf1"}, "QUERY_INTENT_TARGET=inf1: no Neuron device is here: neuron-ls lists none"),
        ("inf2.xlarge", {"target": "inf1"}, "QUERY_INTENT_TARGET=inf1: the chips here have 2 cores each"),
        ("inf1.xlarge", {"target": "inf1", "workers": 5}, "5 workers (QUERY_INTENT_WORKERS) of 1 replicas"),
    ],
)
def test_a_start_that_can_not_be_is_one_line(
    start: Start,
    neuron_host: Callable[..., NeuronHost],
    instance: str | None,
    settings: dict[str, object],
    line: str,
) -> None:
    service = start(neuron_host(instance), **settings)
    assert service.wait_exit() == 1
    (said,) = service.plain_lines
    assert said.startswith(f"query-intent: {line}")
