"""Who computes where: the target, the workers, and each one's slice of the cores in its environment."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app import placement as placement_module
from app.errors import SettingsError
from app.neuron_sdk import SDKS
from app.placement import Placement, place
from app.settings import Settings

Machine = Callable[..., Path]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A /dev with so many chips, a bundle with such targets, and the SDKs that are installed."""
    monkeypatch.setenv("PATH", str(tmp_path))  # no neuron-ls
    monkeypatch.setattr(placement_module, "cpu_budget", lambda: 2)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))

    def make(devices: int = 4, *, targets: tuple[str, ...] = ("inf1",), sdks: tuple[str, ...] = ("inf1",)) -> Path:
        (tmp_path / "dev").mkdir()
        for device in range(devices):
            (tmp_path / "dev" / f"neuron{device}").touch()
        for sdk in sdks:
            (tmp_path / "site" / SDKS[sdk].module).mkdir(parents=True)
        for target in targets:
            (tmp_path / "bundle" / target).mkdir(parents=True)
            (tmp_path / "bundle" / target / "target.json").write_text("{}")
        return tmp_path

    return make


def decide(folder: Path, environ: dict[str, str] | None = None, **settings: Any) -> Placement:
    return place(Settings.model_validate(settings), folder / "bundle", environ or {}, dev=folder / "dev")


class TestSlices:
    def test_an_inf1_6xlarge_has_a_worker_a_chip_with_a_replica_on_each_core(self, machine: Machine) -> None:
        found = decide(machine(4))
        assert (found.target, found.workers, found.replicas, found.span) == ("inf1", 4, 4, 1)
        visible = [found.environment(worker, {})["NEURON_RT_VISIBLE_CORES"] for worker in range(4)]
        assert visible == ["0-3", "4-7", "8-11", "12-15"]

    @pytest.mark.parametrize(
        ("devices", "workers", "replicas", "visible"),
        [(1, 1, 2, ["0-1"]), (2, 1, 4, ["0-3"]), (6, 3, 4, ["0-3", "4-7", "8-11"])],
    )
    def test_chips_of_inferentia_2_are_paired(
        self, machine: Machine, devices: int, workers: int, replicas: int, visible: list[str]
    ) -> None:
        found = decide(machine(devices, targets=("inf2",), sdks=("inf2",)))
        assert (found.target, found.workers, found.replicas) == ("inf2", workers, replicas)
        assert [found.environment(each, {})["NEURON_RT_VISIBLE_CORES"] for each in range(workers)] == visible

    @pytest.mark.parametrize(
        ("environ", "asked", "visible"),
        [
            ({"NEURON_RT_VISIBLE_CORES": "4-11"}, {}, ["4-7", "8-11"]),
            ({"NEURON_RT_NUM_CORES": "2"}, {}, ["0-1"]),
            ({}, {"workers": 2, "replicas": 3}, ["0-2", "3-5"]),
            ({}, {"workers": 16}, [str(core) for core in range(16)]),
            ({"NEURON_RT_VISIBLE_CORES": "1,3"}, {}, ["1,3"]),
        ],
    )
    def test_environment_and_settings_are_kept_to(
        self, machine: Machine, environ: dict[str, str], asked: dict[str, int], visible: list[str]
    ) -> None:
        found = decide(machine(4), environ, **asked)
        assert [found.environment(each, environ)["NEURON_RT_VISIBLE_CORES"] for each in range(found.workers)] == visible

    def test_nothing_contradicts_a_workers_slice(self, machine: Machine) -> None:
        environ = {"NEURON_RT_NUM_CORES": "8", "NEURONCORE_GROUP_SIZES": "4x4", "HOME": "/root"}
        assert decide(machine(4), environ).environment(1, environ) == {
            "HOME": "/root",
            "NEURON_RT_VISIBLE_CORES": "4-7",
            "NEURON_PROCESS_TAG": "query-intent-1",
            "OMP_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }

    def test_a_model_that_is_a_pipeline_takes_its_cores_together(self, machine: Machine) -> None:
        folder = machine(4)
        manifest = {"options": {"pipeline_cores": 4}}
        (folder / "bundle" / "inf1" / "target.json").write_text(json.dumps(manifest))
        found = decide(folder)
        assert (found.workers, found.replicas) == (1, 4)
        assert found.environment(0, {})["NEURON_RT_VISIBLE_CORES"] == "0-15"

    def test_data_parallel_is_one_replica_a_worker_over_all_of_its_cores(self, machine: Machine) -> None:
        found = decide(machine(4), placement="data-parallel")
        assert (found.workers, found.replicas, found.span) == (4, 1, 4)
        assert found.environment(3, {})["NEURON_RT_VISIBLE_CORES"] == "12-15"

    @pytest.mark.parametrize(
        "asked", [{"workers": 4, "replicas": 5}, {"workers": 17}, {"placement": "data-parallel", "replicas": 2}]
    )
    def test_more_than_there_is_is_refused_with_the_numbers(self, machine: Machine, asked: dict[str, Any]) -> None:
        with pytest.raises(SettingsError, match=r"QUERY_INTENT_REPLICAS.*16|16.*QUERY_INTENT_REPLICAS"):
            decide(machine(4), **asked)


class TestAuto:
    def test_it_is_inferentia_where_bundle_sdk_and_devices_are_there(self, machine: Machine) -> None:
        assert decide(machine(1, targets=("cpu", "inf1"))).target == "inf1"

    @pytest.mark.parametrize(
        "lacking",
        [{"devices": 0}, {"targets": ("cpu",)}, {"sdks": ()}, {"sdks": ("inf2",)}],
        ids=["devices", "target", "SDK", "the other SDK"],
    )
    def test_otherwise_it_is_left_to_the_engine_on_the_cpus(self, machine: Machine, lacking: dict[str, Any]) -> None:
        found = decide(machine(**lacking))
        assert (found.target, found.workers, found.replicas, found.slices) == ("auto", 1, 2, [])
        assert "NEURON_RT_VISIBLE_CORES" not in found.environment(0, {})

    def test_with_both_targets_and_sdks_the_chips_decide(self, machine: Machine) -> None:
        folder = machine(1, targets=("inf1", "inf2"), sdks=("inf1", "inf2"))
        (folder / "neuron-ls").write_text('#!/bin/sh\necho \'[{"neuron_device": 0, "nc_count": 2}]\'\n')
        (folder / "neuron-ls").chmod(0o755)
        assert decide(folder).target == "inf2"


class TestRefusals:
    @pytest.mark.parametrize(
        ("machine_has", "message"),
        [
            ({"devices": 0}, "QUERY_INTENT_TARGET=inf1: no Neuron device is here: .*aws-neuronx-dkms"),
            ({"sdks": ()}, "QUERY_INTENT_TARGET=inf1: torch-neuron isn't installed; install it with: pip"),
        ],
    )
    def test_what_was_asked_for_and_is_not_there_is_named(
        self, machine: Machine, machine_has: dict[str, Any], message: str
    ) -> None:
        with pytest.raises(SettingsError, match=message):
            decide(machine(**machine_has), target="inf1")

    def test_chips_of_the_other_generation_are_told_by_their_cores(self, machine: Machine) -> None:
        folder = machine(1)
        (folder / "neuron-ls").write_text('#!/bin/sh\necho \'[{"neuron_device": 0, "nc_count": 2}]\'\n')
        (folder / "neuron-ls").chmod(0o755)
        with pytest.raises(SettingsError, match="the chips here have 2 cores each, which is Inferentia 2"):
            decide(folder, target="inf1")

    @pytest.mark.parametrize("target", ["cpu", "torch", "null"])
    def test_only_inferentia_has_data_parallel(self, machine: Machine, target: str) -> None:
        with pytest.raises(SettingsError, match="PLACEMENT=data-parallel: only targets inf1 and inf2 have it"):
            decide(machine(4), target=target, placement="data-parallel")
