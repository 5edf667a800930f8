"""The records of ``neuron-monitor``. Counts are those of the period since the record before."""

from __future__ import annotations

import os
from typing import Any

from neuron_standin.counters import FIELDS, read_counters
from neuron_standin.reservation import owner
from neuron_standin.settings import read_settings

_ERRORS = ("generic", "numerical", "transient", "model", "runtime", "hardware")
_RESULTS = (
    "completed",
    "completed_with_err",
    "completed_with_num_err",
    "timed_out",
    "incorrect_input",
    "failed_to_queue",
)
_PERCENTILES = ("p0", "p1", "p25", "p50", "p75", "p99", "p100")


class Monitor:
    def __init__(self, period_s: float) -> None:
        self._settings = read_settings()
        self._period_s = period_s
        self._before: dict[int, tuple[int, dict[str, int]]] = {}  # core -> its process then, its counters then

    def record(self) -> dict[str, Any]:
        cores: dict[int, list[int]] = {}
        for core in range(self._settings.cores):
            if (pid := owner(self._settings.state, core)) is not None:
                cores.setdefault(pid, []).append(core)
        return {
            "neuron_runtime_data": [self._runtime(pid, owned) for pid, owned in cores.items()],
            "system_data": self._system(),
            "instance_info": {
                "instance_id": "i-0123456789abcdef0",
                "instance_type": self._settings.instance,
                "instance_availability_zone": "us-east-1a",
                "instance_region": "us-east-1",
                "ami_id": "ami-0123456789abcdef0",
                "subnet_id": "subnet-0123456789abcdef0",
                "error": "",
            },
            "neuron_hardware_info": {
                "neuron_device_count": self._settings.devices,
                "neuroncore_per_device_count": self._settings.cores_a_device,
                "error": "" if self._settings.devices else "no Neuron Device found",
            },
        }

    def _runtime(self, pid: int, cores: list[int]) -> dict[str, Any]:
        now = {core: read_counters(self._settings.state, core) for core in cores}
        since = {core: self._since(pid, core, counters) for core, counters in now.items()}
        total = {field: sum(counters[field] for counters in since.values()) for field in FIELDS}
        memory = {str(core): _core_memory(counters["memory_bytes"]) for core, counters in now.items()}
        on_device = sum(counters["memory_bytes"] for counters in now.values())
        host = {"application_memory": 2**28, "constants": 0, "dma_buffers": 2**20, "tensors": 0}
        report = {
            "neuroncore_counters": {
                "period": self._period_s,
                "neuroncores_in_use": {
                    str(core): {"neuroncore_utilization": min(100.0, counters["busy_ns"] / self._period_s / 1e7)}
                    for core, counters in since.items()
                },
                "error": "",
            },
            "execution_stats": {
                "period": self._period_s,
                "error_summary": {name: total[name] for name in _ERRORS},
                "execution_summary": {name: total[name] for name in _RESULTS},
                "latency_stats": _latency(total),
                "error": "",
            },
            "memory_used": {
                "period": self._period_s,
                "neuron_runtime_used_bytes": {
                    "host": sum(host.values()),
                    "neuron_device": on_device,
                    "usage_breakdown": {"host": host, "neuroncore_memory_usage": memory},
                },
                "loaded_models": self._models(now),
                "error": "",
            },
            "neuron_runtime_vcpu_usage": {
                "period": self._period_s,
                "vcpu_usage": {"user": 0.0, "system": 0.0},
                "error": "",
            },
        }
        return {"pid": pid, "neuron_runtime_tag": str(pid), "error": "", "report": report}

    def _since(self, pid: int, core: int, now: dict[str, int]) -> dict[str, int]:
        process, before = self._before.get(core, (pid, now))
        self._before[core] = (pid, now)
        # A new process has counted from zero.
        return {field: now[field] - (before[field] if process == pid else 0) for field in FIELDS}

    def _models(self, cores: dict[int, dict[str, int]]) -> list[dict[str, Any]]:
        found = []
        for core, counters in cores.items():
            for model in range(counters["models"]):
                subgraph = {
                    "memory_used_bytes": {"host": 0, "neuron_device": counters["memory_bytes"] // counters["models"]},
                    "neuroncore_index": core % self._settings.cores_a_device,
                    "neuron_device_index": core // self._settings.cores_a_device,
                }
                found.append(
                    {
                        "name": "row.neff",
                        "uuid": f"{core:016x}{model:016x}",
                        "model_id": 10_000 + 100 * core + model,
                        "is_running": True,
                        "subgraphs": {"sg_00": subgraph},
                    }
                )
        return found

    def _system(self) -> dict[str, Any]:
        devices = [self._ecc(device) for device in range(self._settings.devices)]
        pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
        free = os.sysconf("SC_AVPHYS_PAGES") * size
        return {
            "neuron_hw_counters": {"period": self._period_s, "neuron_devices": devices or None, "error": ""},
            "vcpu_usage": {
                "period": self._period_s,
                "average_usage": {"user": 0.0, "nice": 0, "system": 0.0, "idle": 100.0, "io_wait": 0, "irq": 0},
                "usage_data": {},
                "context_switch_count": 0,
                "error": "",
            },
            "memory_info": {
                "period": self._period_s,
                "memory_total_bytes": pages * size,
                "memory_used_bytes": pages * size - free,
                "swap_total_bytes": 0,
                "swap_used_bytes": 0,
                "error": "",
            },
        }

    def _ecc(self, device: int) -> dict[str, int]:
        cores = range(device * self._settings.cores_a_device, (device + 1) * self._settings.cores_a_device)
        errors = sum(read_counters(self._settings.state, core)["sram_ecc_uncorrected"] for core in cores)
        return {
            "neuron_device_index": device,
            "mem_ecc_corrected": 0,
            "mem_ecc_uncorrected": 0,
            "sram_ecc_corrected": 0,
            "sram_ecc_uncorrected": errors,
        }


def _latency(total: dict[str, int]) -> dict[str, Any]:
    """In seconds; null when nothing ran. One figure stands for all percentiles: the period's mean."""
    if not total["completed"]:
        return {"total_latency": None, "device_latency": None}
    mean = total["busy_ns"] / total["completed"] / 1e9
    return {"total_latency": dict.fromkeys(_PERCENTILES, mean), "device_latency": dict.fromkeys(_PERCENTILES, mean)}


def _core_memory(used: int) -> dict[str, int]:
    constants = used * 3 // 4
    return {
        "constants": constants,
        "model_code": used - constants,
        "model_shared_scratchpad": 0,
        "runtime_memory": 0,
        "tensors": 0,
    }
