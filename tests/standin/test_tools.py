"""neuron-ls and neuron-monitor of the machine that is played."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.neuron import NeuronHost
from tests.standin.conftest import holding

Make = Callable[..., NeuronHost]


def neuron_ls(host: NeuronHost) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["neuron-ls", "-j"], env=host.env, capture_output=True, text=True, check=False)


def first_record(host: NeuronHost) -> dict[str, Any]:
    with subprocess.Popen(["neuron-monitor"], env=host.env, stdout=subprocess.PIPE, text=True) as monitor:
        assert monitor.stdout
        line = monitor.stdout.readline()
        monitor.kill()
    found: dict[str, Any] = json.loads(line)
    return found


def test_neuron_ls_lists_chips_and_who_has_their_cores(neuron_host: Make, inf1_row: str) -> None:
    host = neuron_host("inf1.6xlarge")
    with holding(host, inf1_row, NEURON_RT_VISIBLE_CORES="4-7") as process:
        devices = json.loads(neuron_ls(host).stdout)
        process.kill()
    assert [device["neuron_device"] for device in devices] == [0, 1, 2, 3]
    assert devices[1]["nc_count"] == 4
    assert devices[1]["memory_size"] == 8 * 2**30
    assert devices[1]["neuroncore_ids"] == [4, 5, 6, 7]
    assert devices[1]["numa_node"] == "0", "a string"
    assert [device["neuron_processes"] for device in devices if device["neuron_device"] != 1] == [[], [], []]
    assert [one["pid"] for one in devices[1]["neuron_processes"]] == [process.pid]


def test_a_lone_chip_is_connected_to_null_and_old_tools_say_less(neuron_host: Make) -> None:
    (device,) = json.loads(neuron_ls(neuron_host("inf1.xlarge", tools="old")).stdout)
    assert device["connected_to"] is None
    assert not {"cpu_affinity", "numa_node", "neuroncore_ids"} & set(device)


def test_without_devices_neuron_ls_fails_and_prints_nothing(neuron_host: Make) -> None:
    done = neuron_ls(neuron_host(None))
    assert (done.returncode, done.stdout) == (1, "")
    assert "failed to discover Neuron devices" in done.stderr


def test_neuron_monitor_reports_cores_models_and_memory(neuron_host: Make, inf1_row: str) -> None:
    host = neuron_host("inf1.xlarge")
    with holding(host, inf1_row) as process:
        record = first_record(host)
        process.kill()
    (runtime,) = record["neuron_runtime_data"]
    assert runtime["pid"] == process.pid
    report = runtime["report"]
    assert set(report["neuroncore_counters"]["neuroncores_in_use"]) == {"0", "1", "2", "3"}
    assert report["execution_stats"]["latency_stats"] == {"total_latency": None, "device_latency": None}
    memory = report["memory_used"]["neuron_runtime_used_bytes"]
    assert memory["neuron_device"] == 2**23
    assert sum(memory["usage_breakdown"]["neuroncore_memory_usage"]["0"].values()) == 2**23
    assert len(report["memory_used"]["loaded_models"]) == 1
    assert record["neuron_hardware_info"]["neuroncore_per_device_count"] == 4
    assert record["system_data"]["neuron_hw_counters"]["neuron_devices"][0]["sram_ecc_uncorrected"] == 0


def test_neuron_monitor_on_a_host_without_devices_has_nulls(neuron_host: Make) -> None:
    record = first_record(neuron_host(None))
    assert record["neuron_runtime_data"] == []
    assert record["system_data"]["neuron_hw_counters"]["neuron_devices"] is None


def test_the_period_comes_from_the_configuration(neuron_host: Make, tmp_path: Path) -> None:
    config = tmp_path / "monitor.json"
    config.write_text('{"period": "0.05s"}')
    host = neuron_host()
    command = ["neuron-monitor", "-c", str(config)]
    with subprocess.Popen(command, env=host.env, stdout=subprocess.PIPE, text=True) as monitor:
        assert monitor.stdout
        lines = [monitor.stdout.readline() for _ in range(3)]
        monitor.kill()
    assert all(json.loads(line)["instance_info"]["instance_type"] == "inf1.xlarge" for line in lines)


def test_counts_are_those_since_the_record_before(neuron_host: Make) -> None:
    """In one process, since a period is over when the next record is asked for."""
    host = neuron_host()
    program = """
import json
from neuron_standin.counters import Counters
from neuron_standin.monitor import Monitor
from neuron_standin.reservation import reserve
from neuron_standin.settings import read_settings
settings = read_settings()
reservation = reserve(settings)
counters = [Counters(settings.state, core) for core in range(settings.cores)]
counters[2].count_execution(500_000_000)
monitor = Monitor(1.0)
monitor.record()
for _ in range(3): counters[2].count_execution(100_000_000)
counters[2].count_failure(5)
counters[2].count_failure(6)
print(json.dumps(monitor.record()))
"""
    record = json.loads(host.python(program).stdout)
    report = record["neuron_runtime_data"][0]["report"]
    stats = report["execution_stats"]
    assert report["neuroncore_counters"]["neuroncores_in_use"]["2"]["neuroncore_utilization"] == 30.0
    assert (stats["execution_summary"]["completed"], stats["execution_summary"]["timed_out"]) == (3, 1)
    assert (stats["error_summary"]["transient"], stats["error_summary"]["hardware"]) == (1, 1)
    assert stats["latency_stats"]["total_latency"]["p99"] == 0.1
    assert record["system_data"]["neuron_hw_counters"]["neuron_devices"][0]["sram_ecc_uncorrected"] == 1
