"""The metrics of the NeuronCores: counts add up, what is now is the last record's."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from app.neuron_metrics import NeuronMetrics
from app.neuron_records import read_record
from tests.app.neuron_samples import idle_record, line, record, report

# Dashboards and alarms are made of these names and labels.
NAMES = {
    "monitor_up": set(),
    "monitor_records_total": set(),
    "devices": set(),
    "core_utilization_ratio": {"core"},
    "core_memory_bytes": {"core", "kind"},
    "memory_bytes": {"location"},
    "executions_total": {"result"},
    "errors_total": {"kind"},
    "ecc_events_total": {"device", "kind"},
}


class Observed:
    def __init__(self) -> None:
        self.metrics = NeuronMetrics()
        self.registry = CollectorRegistry()
        self.registry.register(self.metrics)

    def observe(self, content: dict) -> None:
        found = read_record(line(content))
        assert found is not None
        self.metrics.observe(found)

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"query_intent_neuron_{name}", labels)


@pytest.fixture
def cores() -> Observed:
    return Observed()


def test_each_has_its_documented_name_and_labels_and_an_explanation(cores: Observed) -> None:
    cores.observe(record(report({"0": 50.0})))

    families = list(cores.registry.collect())
    found = {sample.name: set(sample.labels) for family in families for sample in family.samples}
    assert found == {f"query_intent_neuron_{name}": labels for name, labels in NAMES.items()}
    assert all(family.documentation for family in families)


def test_what_is_now_is_the_last_records(cores: Observed) -> None:
    cores.observe(record(report({"0": 50.0, "1": 10.0})))
    cores.observe(record(report({"0": 20.0})))

    assert cores.value("core_utilization_ratio", core="0") == 0.2
    assert cores.value("core_utilization_ratio", core="1") is None
    assert cores.value("core_memory_bytes", core="0", kind="tensors") == 7
    assert cores.value("memory_bytes", location="neuron_device") == 130


def test_counts_are_of_a_period_and_add_up(cores: Observed) -> None:
    failing = report({"0": 50.0})
    failing["execution_stats"]["error_summary"]["hardware"] = 2
    failing["execution_stats"]["execution_summary"]["timed_out"] = 1
    for content in (record(failing, ecc=1), record(failing, ecc=3), idle_record()):
        cores.observe(content)

    assert cores.value("errors_total", kind="hardware") == 4
    assert cores.value("executions_total", result="completed") == 1000
    assert cores.value("executions_total", result="timed_out") == 2
    assert cores.value("ecc_events_total", device="0", kind="mem_ecc_corrected") == 4
    assert cores.value("monitor_records_total") == 3


def test_a_count_is_there_before_it_is_more_than_zero(cores: Observed) -> None:
    """Else the first error that an alarm should see would look like the beginning of a series."""
    cores.observe(record(report({"0": 50.0})))

    assert cores.value("errors_total", kind="hardware") == 0
    assert cores.value("ecc_events_total", device="0", kind="mem_ecc_uncorrected") == 0


def test_once_nobody_watches_nothing_is_said_of_now_and_no_total_falls(cores: Observed) -> None:
    cores.observe(record(report({"0": 50.0})))
    assert cores.value("monitor_up") == 1

    cores.metrics.forget_latest()

    assert cores.value("monitor_up") == 0
    assert cores.value("core_utilization_ratio", core="0") is None
    assert cores.value("devices") is None
    assert cores.value("executions_total", result="completed") == 500
