"""How often the kernel put the service's container aside for having used up its CPU quota, as metrics."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from app.cpu_budget import CGROUP
from app.metrics import PREFIX

# Seconds in one of its unit, by the name that cgroup v2 and v1 give the same sum.
_UNITS = {"throttled_usec": 1e-6, "throttled_time": 1e-9}


class CpuThrottling(Collector):
    """Of the cgroup that this process sees as its own. Without a quota there is nothing to tell."""

    def __init__(self, cgroup: Path = CGROUP) -> None:
        self._cgroup = cgroup

    def collect(self) -> Iterator[Metric]:
        counts = _read(self._cgroup / "cpu.stat") or _read(self._cgroup / "cpu" / "cpu.stat")
        if not counts.get("nr_periods"):
            return
        yield _counter("cpu_periods", "Periods of the CPU quota in which the service ran", counts["nr_periods"])
        throttled = counts.get("nr_throttled", 0)
        yield _counter("cpu_throttled_periods", "Periods in which it used the quota up and was stopped", throttled)
        seconds = sum(counts[name] * unit for name, unit in _UNITS.items() if name in counts)
        yield _counter("cpu_throttled_seconds", "Seconds for which it was stopped", seconds)


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(PREFIX + name, text, value=value)


def _read(path: Path) -> dict[str, int]:
    """Of lines such as "nr_throttled 12"; empty where there is no such file, or not of the kind."""
    try:
        pairs = (line.split() for line in path.read_text().splitlines())
        counts = {name: int(count) for name, count in pairs}
    except (OSError, ValueError):
        return {}
    return counts if "nr_periods" in counts else {}
