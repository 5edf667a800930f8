"""What a record of ``neuron-monitor`` says, as far as it can be read.

Fields are null while nothing runs, absent on Inf1 or in other versions, and whole groups carry an error instead: each
is read by itself, and what is not a number of its kind is left out. Paths: the Neuron Monitor User Guide.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

ECC_EVENTS = ("mem_ecc_corrected", "mem_ecc_uncorrected", "sram_ecc_corrected", "sram_ecc_uncorrected")


@dataclass(frozen=True, slots=True)
class Record:
    """One period. The first four hold what is now, the last three count what happened in the period.

    - ``devices``: chips of the instance, ``None`` where it does not say;
    - ``utilization`` of a core, 0 to 1, of all processes;
    - ``core_memory``: bytes by core and kind, and ``memory`` by where it is (``host``, ``neuron_device``);
    - ``executions`` by how they ended, ``errors`` by kind, ``ecc_events`` by device and kind.
    """

    devices: int | None = None
    utilization: Counter[str] = field(default_factory=Counter)
    core_memory: Counter[tuple[str, str]] = field(default_factory=Counter)
    memory: Counter[str] = field(default_factory=Counter)
    executions: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    ecc_events: Counter[tuple[str, str]] = field(default_factory=Counter)


def read_record(line: bytes) -> Record | None:
    """``None`` for a line that is no record."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or not record.keys() & {"neuron_runtime_data", "system_data"}:
        return None
    devices = _number(_at(record, "neuron_hardware_info", "neuron_device_count"))
    read = Record(devices=None if devices is None else int(devices))
    for runtime in _items(record, "neuron_runtime_data"):
        _add_report(read, _at(runtime, "report"))
    for device in _items(record, "system_data", "neuron_hw_counters", "neuron_devices"):
        for event in ECC_EVENTS:
            if (count := _number(_at(device, event))) is not None:
                read.ecc_events[str(_at(device, "neuron_device_index")), event] += count
    return read


def _add_report(read: Record, report: Any) -> None:
    """Of one process that uses the runtime. A core belongs to one of them, so sums are over different cores."""
    for core, counters in _members(report, "neuroncore_counters", "neuroncores_in_use"):
        if (percent := _number(_at(counters, "neuroncore_utilization"))) is not None:
            read.utilization[core] += percent / 100
    used = ("memory_used", "neuron_runtime_used_bytes")
    for place in ("host", "neuron_device"):
        if (total := _number(_at(report, *used, place))) is not None:
            read.memory[place] += total
    for core, kinds in _members(report, *used, "usage_breakdown", "neuroncore_memory_usage"):
        for kind, value in _members(kinds):
            if (total := _number(value)) is not None:
                read.core_memory[core, kind] += total
    for group, counts in (("execution_summary", read.executions), ("error_summary", read.errors)):
        for name, value in _members(report, "execution_stats", group):
            if (count := _number(value)) is not None:
                counts[name] += count


def _at(value: Any, *path: str) -> Any:
    """What lies there; ``None`` where the way is blocked."""
    for name in path:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def _members(value: Any, *path: str) -> Iterator[tuple[str, Any]]:
    found = _at(value, *path)
    return iter(found.items() if isinstance(found, dict) else ())


def _items(value: Any, *path: str) -> Iterator[Any]:
    found = _at(value, *path)
    return iter(found if isinstance(found, list) else ())


def _number(value: Any) -> Any:
    """A count or an amount; ``None`` for anything else, true and NaN among it."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if is_number and math.isfinite(value) and value >= 0 else None
