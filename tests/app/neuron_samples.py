"""Records as ``neuron-monitor`` prints them: an Inf1 chip at work, and an instance where nothing runs."""

from __future__ import annotations

import copy
import json
from typing import Any

LATENCIES = dict.fromkeys(("p0", "p1", "p25", "p50", "p75", "p99", "p100"), 0.003)


def report(cores: dict[str, float], **changes: Any) -> dict[str, Any]:
    """Of one process with these percents of utilisation by core."""
    breakdown = {"constants": 100, "model_code": 20, "model_shared_scratchpad": 0, "runtime_memory": 3, "tensors": 7}
    kinds = dict.fromkeys(cores, breakdown)
    plain = {
        "neuroncore_counters": {
            "period": 5.0,
            "neuroncores_in_use": {core: {"neuroncore_utilization": percent} for core, percent in cores.items()},
            "error": "",
        },
        "execution_stats": {
            "period": 5.0,
            "error_summary": {"generic": 0, "numerical": 0, "transient": 0, "model": 0, "runtime": 0, "hardware": 0},
            "execution_summary": {
                "completed": 500,
                "completed_with_err": 0,
                "completed_with_num_err": 0,
                "timed_out": 0,
                "incorrect_input": 0,
                "failed_to_queue": 0,
            },
            "latency_stats": {"total_latency": LATENCIES, "device_latency": LATENCIES},
            "error": "",
        },
        "memory_used": {
            "period": 5.0,
            "neuron_runtime_used_bytes": {
                "host": 1000,
                "neuron_device": 130 * len(cores),
                "usage_breakdown": {"host": {"application_memory": 1000}, "neuroncore_memory_usage": kinds},
            },
            "loaded_models": [],
            "error": "",
        },
        "neuron_runtime_vcpu_usage": {"period": 5.0, "vcpu_usage": {"user": 1.5, "system": 0.2}, "error": ""},
    }
    return copy.deepcopy(plain) | changes


def record(*reports: dict[str, Any], ecc: int = 0) -> dict[str, Any]:
    """Of an inf1.xlarge on which these processes run."""
    device = {"neuron_device_index": 0, "mem_ecc_corrected": ecc, "mem_ecc_uncorrected": 0, "sram_ecc_uncorrected": 0}
    return {
        "neuron_runtime_data": [
            {"pid": 100 + number, "neuron_runtime_tag": str(100 + number), "error": "", "report": each}
            for number, each in enumerate(reports)
        ],
        "system_data": {
            "memory_info": {"period": 5.0, "memory_total_bytes": 8 << 30, "memory_used_bytes": 1 << 30, "error": ""},
            "neuron_hw_counters": {"period": 5.0, "neuron_devices": [device], "error": ""},
            "vcpu_usage": {"period": 5.0, "average_usage": {"user": 10.0, "idle": 90.0}, "usage_data": {}, "error": ""},
        },
        "instance_info": {"instance_type": "inf1.xlarge", "error": ""},
        "neuron_hardware_info": {"neuron_device_count": 1, "neuroncore_per_device_count": 4, "error": ""},
    }


def idle_record() -> dict[str, Any]:
    """Without a process and without a device that answers: lists are empty and groups are null."""
    return {
        "neuron_runtime_data": [],
        "system_data": {"memory_info": {}, "neuron_hw_counters": {"neuron_devices": None, "error": "no device"}},
        "instance_info": None,
        "neuron_hardware_info": {"neuron_device_count": 0, "neuroncore_per_device_count": 0, "error": "no device"},
    }


def line(content: dict[str, Any]) -> bytes:
    return json.dumps(content).encode() + b"\n"
