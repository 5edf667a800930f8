"""Which NeuronCores there are: as ``neuron-ls`` prints them in its versions, or as ``/dev`` has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.errors import SettingsError
from app.neuron_devices import Device, Process, discover, format_cores, parse_cores, visible_cores


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts a ``neuron-ls`` on an otherwise empty PATH that prints what it is given."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))

    def install(output: object, code: int = 0) -> None:
        (tmp_path / "bin").mkdir()
        text = output if isinstance(output, str) else json.dumps(output)
        script = tmp_path / "bin" / "neuron-ls"
        script.write_text(f"#!/bin/sh\n[ \"$1\" = -j ] || exit 3\n/bin/cat <<'END'\n{text}\nEND\nexit {code}\n")
        script.chmod(0o755)

    return install


def dev(folder: Path, *names: str) -> Path:
    (folder / "dev").mkdir()
    for name in names:
        (folder / "dev" / name).touch()
    return folder / "dev"


class TestTool:
    def test_a_recent_one_says_which_cores_and_who_is_there(self, tool: Any) -> None:
        entry = {
            "neuron_device": 2,
            "bdf": "00:1c.0",
            "numa_node": "0",
            "nc_count": 4,
            "memory_size": 8 << 30,
            "neuroncore_ids": [8, 9, 10, 11],
            "neuron_processes": [{"pid": 41, "command": "python serve.py", "neuron_runtime_version": "2.20"}],
        }
        tool([entry])
        assert discover(2) == [Device(2, (8, 9, 10, 11), (Process(41, "python serve.py"),))]

    def test_of_one_of_before_2025_the_numbers_follow_from_the_device(self, tool: Any) -> None:
        tool([{"neuron_device": device, "nc_count": 2, "connected_to": None} for device in (0, 1)])
        assert discover(4) == [Device(0, (0, 1)), Device(1, (2, 3))]

    def test_nulls_are_nothing(self, tool: Any) -> None:
        tool([{"neuron_device": 0, "nc_count": 4, "neuroncore_ids": None, "neuron_processes": None}])
        assert discover(4) == [Device(0, (0, 1, 2, 3))]

    @pytest.mark.parametrize(
        ("output", "code"), [("", 1), ("level=fatal", 1), ("null", 0), ("[]", 0), ('{"error": 1}', 0)]
    )
    def test_one_that_lists_nothing_leaves_it_to_dev(self, tool: Any, tmp_path: Path, output: str, code: int) -> None:
        tool(output, code)
        assert discover(4, dev=dev(tmp_path)) == []
        (tmp_path / "dev" / "neuron0").touch()
        assert discover(4, dev=tmp_path / "dev") == [Device(0, (0, 1, 2, 3))]


class TestDev:
    @pytest.fixture(autouse=True)
    def without_tool(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))

    def test_each_device_has_the_cores_of_its_generation(self, tmp_path: Path) -> None:
        folder = dev(tmp_path, "neuron0", "neuron1", "null", "neuron", "neuron_ctl", "neuron1x")
        assert discover(2, dev=folder) == [Device(0, (0, 1)), Device(1, (2, 3))]

    def test_or_as_many_as_the_driver_says(self, tmp_path: Path) -> None:
        (tmp_path / "neuron0").mkdir()
        (tmp_path / "neuron0" / "core_count").write_text("2\n")
        assert discover(4, dev=dev(tmp_path, "neuron0"), sysfs=tmp_path) == [Device(0, (0, 1))]

    def test_devices_are_numbers_and_not_texts(self, tmp_path: Path) -> None:
        folder = dev(tmp_path, *(f"neuron{number}" for number in range(12)))
        assert [device.number for device in discover(4, dev=folder)] == list(range(12))

    def test_a_container_that_sees_the_third_chip_alone_has_its_cores(self, tmp_path: Path) -> None:
        assert discover(4, dev=dev(tmp_path, "neuron2")) == [Device(2, (8, 9, 10, 11))]

    def test_without_any_there_is_none(self, tmp_path: Path) -> None:
        assert discover(4, dev=tmp_path / "absent") == []


class TestVisible:
    TWO = (Device(0, (0, 1, 2, 3)), Device(1, (4, 5, 6, 7)))

    @pytest.mark.parametrize(
        ("environ", "cores"),
        [
            ({}, [0, 1, 2, 3, 4, 5, 6, 7]),
            ({"NEURON_RT_VISIBLE_CORES": "2-5"}, [2, 3, 4, 5]),
            ({"NEURON_RT_VISIBLE_CORES": "6,1"}, [1, 6]),
            ({"NEURON_RT_NUM_CORES": "3"}, [0, 1, 2]),
            ({"NEURON_RT_NUM_CORES": "0"}, [0, 1, 2, 3, 4, 5, 6, 7]),
            ({"NEURON_RT_NUM_CORES": "3", "NEURON_RT_VISIBLE_CORES": "7"}, [7]),
        ],
    )
    def test_the_environment_leaves_some(self, environ: dict[str, str], cores: list[int]) -> None:
        assert visible_cores(self.TWO, environ) == cores

    @pytest.mark.parametrize(
        ("environ", "message"),
        [
            ({"NEURON_RT_VISIBLE_CORES": "6-9"}, "NEURON_RT_VISIBLE_CORES=6-9: there is no NeuronCore 8-9, only 0-7"),
            ({"NEURON_RT_VISIBLE_CORES": "nc0"}, "NEURON_RT_VISIBLE_CORES=nc0: must be core numbers and ranges"),
            ({"NEURON_RT_NUM_CORES": "9"}, "NEURON_RT_NUM_CORES=9: must be a number from 0 .all. to 8"),
            ({"NEURON_RT_NUM_CORES": "x"}, "NEURON_RT_NUM_CORES=x"),
        ],
    )
    def test_what_is_not_there_is_named(self, environ: dict[str, str], message: str) -> None:
        with pytest.raises(SettingsError, match=message):
            visible_cores(self.TWO, environ)

    @pytest.mark.parametrize(
        ("text", "cores"), [("0", [0]), ("0-3", [0, 1, 2, 3]), ("0-1,3,6-7", [0, 1, 3, 6, 7]), ("0,2,4", [0, 2, 4])]
    )
    def test_a_list_reads_as_it_is_written(self, text: str, cores: list[int]) -> None:
        assert (parse_cores(text), format_cores(cores)) == (cores, text)

    @pytest.mark.parametrize("text", ["", "3-1", "a", "1-", "-1", "1;2"])
    def test_nonsense_is_refused(self, text: str) -> None:
        with pytest.raises(SettingsError, match="must be core numbers and ranges, such as 0-3"):
            parse_cores(text)
