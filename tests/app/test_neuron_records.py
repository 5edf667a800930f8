"""What a record of neuron-monitor says, whatever is null, missing or wrong in it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.neuron_records import Record, read_record
from tests.app.neuron_samples import idle_record, line, record, report


def read(content: dict[str, Any]) -> Record:
    found = read_record(line(content))
    assert found is not None
    return found


def test_cores_of_several_processes_are_read_as_cores_of_one_instance() -> None:
    found = read(record(report({"0": 42.5, "1": 0.0}), report({"2": 100.0})))

    assert found.utilization == {"0": 0.425, "1": 0.0, "2": 1.0}
    assert found.memory == {"host": 2000, "neuron_device": 390}
    assert found.core_memory["2", "constants"] == 100
    assert found.executions["completed"] == 1000
    assert found.errors["hardware"] == 0
    assert found.ecc_events == {
        ("0", "mem_ecc_corrected"): 0,
        ("0", "mem_ecc_uncorrected"): 0,
        ("0", "sram_ecc_uncorrected"): 0,
    }
    assert found.devices == 1


def test_where_nothing_runs_there_is_nothing_to_say_but_the_devices() -> None:
    assert read(idle_record()) == Record(devices=0)


@pytest.mark.parametrize(
    "group", ["neuroncore_counters", "execution_stats", "memory_used", "neuron_runtime_vcpu_usage"]
)
@pytest.mark.parametrize("instead", [None, {}, [], "error", 7, {"error": "unavailable"}])
def test_a_group_that_is_missing_takes_nothing_else_with_it(group: str, instead: Any) -> None:
    found = read(record(report({"0": 50.0}, **{group: instead})))
    whole = read(record(report({"0": 50.0})))

    for name in ("utilization", "executions", "errors", "memory", "core_memory"):
        assert getattr(found, name) in ({}, getattr(whole, name))
    assert found.ecc_events == whole.ecc_events


@pytest.mark.parametrize("value", [None, "12", True, [], {}, float("nan"), float("inf"), -1])
def test_what_is_no_amount_is_left_out(value: Any) -> None:
    counters = {"neuroncores_in_use": {"0": {"neuroncore_utilization": value}, "1": {"neuroncore_utilization": 25}}}

    assert read(record(report({}, neuroncore_counters=counters))).utilization == {"1": 0.25}


def test_a_process_without_a_report_is_left_out() -> None:
    content = record(report({"0": 50.0}))
    content["neuron_runtime_data"] += [{"pid": 7, "error": "gone"}, None, {"pid": 8, "report": None}]

    assert read(content).utilization == {"0": 0.5}


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"\n",
        b"null\n",
        b"[]\n",
        b"7\n",
        b"{}\n",
        b'{"a": 1}\n',
        b'{"neuron_runtime_data": [',
        b"\xff\xfe\n",
        b"[" * 9999,
    ],
)
def test_a_line_that_is_no_record_is_told_from_one(garbage: bytes) -> None:
    assert read_record(garbage) is None


anything = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(data=anything, system=anything, hardware=anything)
def test_no_content_of_a_record_raises(data: Any, system: Any, hardware: Any) -> None:
    content = {
        "neuron_runtime_data": [data, {"report": data}, {"report": {"memory_used": data, "execution_stats": data}}]
    }
    content |= {"system_data": system, "neuron_hardware_info": hardware}

    read(content)
