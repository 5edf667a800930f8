"""The metrics of the NeuronCores: what ``neuron-monitor`` says, on the operations port."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from app.metrics import PREFIX
from app.neuron_records import Record

NEURON = f"{PREFIX}neuron_"
Key = TypeVar("Key")


class NeuronMetrics(Collector):
    """What was counted adds up over records, and what is now is the last record's, none once that is the past.

    The event loop hands records in while a thread collects, so what is collected is replaced and never changed.
    """

    def __init__(self) -> None:
        self._latest: Record | None = None
        self._totals = Record()
        self._records = 0

    def observe(self, record: Record) -> None:
        totals = self._totals
        self._totals = Record(
            executions=_sum(totals.executions, record.executions),
            errors=_sum(totals.errors, record.errors),
            ecc_events=_sum(totals.ecc_events, record.ecc_events),
        )
        self._records += 1
        self._latest = record

    def forget_latest(self) -> None:
        """Nobody watches the cores at the moment; what was counted stays counted."""
        self._latest = None

    def collect(self) -> Iterator[Metric]:
        latest, totals = self._latest, self._totals
        up = GaugeMetricFamily(f"{NEURON}monitor_up", "Whether neuron-monitor tells of the cores: 1 or 0")
        up.add_metric([], latest is not None)
        yield up
        records = CounterMetricFamily(f"{NEURON}monitor_records", "Records read of neuron-monitor")
        records.add_metric([], self._records)
        yield records
        now = latest or Record()
        if now.devices is not None:
            yield GaugeMetricFamily(f"{NEURON}devices", "Neuron devices of the instance", value=now.devices)
        yield _gauge("core_utilization_ratio", "Share of the time that a core computed", ["core"], now.utilization)
        yield _gauge("core_memory_bytes", "Device memory used by a core", ["core", "kind"], now.core_memory)
        yield _gauge("memory_bytes", "Memory used by the Neuron runtime", ["location"], now.memory)
        yield _counter("executions", "Executions by how they ended", ["result"], totals.executions)
        yield _counter("errors", "Failed executions by kind of error", ["kind"], totals.errors)
        yield _counter("ecc_events", "Memory errors of a device", ["device", "kind"], totals.ecc_events)


def _sum(one: Counter[Key], other: Counter[Key]) -> Counter[Key]:
    """With what is zero, which Counter's own sum leaves out: a counter that is there from the start shows its first."""
    total = Counter(one)
    total.update(other)
    return total


def _gauge(name: str, text: str, labels: list[str], values: Mapping[Any, float]) -> Metric:
    return _fill(GaugeMetricFamily(NEURON + name, text, labels=labels), values)


def _counter(name: str, text: str, labels: list[str], values: Mapping[Any, float]) -> Metric:
    return _fill(CounterMetricFamily(NEURON + name, text, labels=labels), values)


def _fill(family: Any, values: Mapping[Any, float]) -> Metric:
    for key, value in values.items():
        family.add_metric([key] if isinstance(key, str) else list(key), value)
    filled: Metric = family
    return filled
