"""Chips, driver, tools and cores, told by devices that stand in for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.neuron_devices import Device, Process
from app.tools.doctor.check import Verdict
from app.tools.doctor.host import Host
from app.tools.doctor.neuron import chips, cores, devices, driver, target_of, tools


def host(folder: Path, **environ: str) -> Host:
    places = {name: folder / name for name in ("dev", "proc", "sysfs", "neuron")}
    for place in places.values():
        place.mkdir(exist_ok=True)
    return Host(environ=environ, **places)


def inf1(chips: int = 1, *processes: Process) -> list[Device]:
    return [Device(number, tuple(range(4 * number, 4 * number + 4)), processes) for number in range(chips)]


INF2 = [Device(0, (0, 1))]


class TestChips:
    def test_their_number_of_cores_says_which_target_they_run(self) -> None:
        assert (target_of(inf1(4)), target_of(INF2), target_of([])) == ("inf1", "inf2", None)

    def test_all_are_counted(self) -> None:
        found = chips(inf1(4))
        assert (found.verdict, found.detail) == (Verdict.OK, "4 × Inferentia 1, 16 cores")

    def test_without_tools_they_are_found_among_the_devices(self, tmp_path: Path) -> None:
        here = host(tmp_path)
        (tmp_path / "dev/neuron0").touch()
        assert [each.cores for each in devices(here)] == [(0, 1, 2, 3)]

    def test_none_is_a_failure_that_says_what_to_start_and_to_pass_in(self) -> None:
        found = chips([])
        assert found.is_failed
        assert "/dev/neuron0" in found.detail
        assert all(word in found.remedy for word in ("inf1", "aws-neuronx-dkms", "--device=/dev/neuron0"))

    def test_another_kind_is_named_by_its_cores(self) -> None:
        found = chips([Device(0, tuple(range(8)))])
        assert found.is_failed
        assert "8 cores" in found.detail


class TestDriver:
    @pytest.mark.parametrize(
        ("version", "target", "verdict"),
        [
            ("2.24.7.0", "inf1", Verdict.OK),
            ("2.25.4.0", "inf1", Verdict.FAILED),
            ("2.30.2.0", "inf2", Verdict.OK),
            ("", "inf1", Verdict.FAILED),
        ],
    )
    def test_inferentia_1_needs_one_that_still_knows_it(
        self, tmp_path: Path, version: str, target: str, verdict: Verdict
    ) -> None:
        here = host(tmp_path)
        if version:
            (tmp_path / "sysfs/module/neuron").mkdir(parents=True)
            (tmp_path / "sysfs/module/neuron/version").write_text(f"{version}\n")
        found = driver(here, [], target)
        assert found.verdict is verdict
        assert verdict is Verdict.OK or "aws-neuronx-dkms" in found.remedy

    def test_one_that_can_not_be_asked_may_still_work_where_there_are_devices(self, tmp_path: Path) -> None:
        assert driver(host(tmp_path), inf1(), "inf1").verdict is Verdict.WARNING


def test_tools_that_are_missing_are_named(tmp_path: Path) -> None:
    here = host(tmp_path, PATH=str(tmp_path))
    tool = tmp_path / "neuron-ls"
    tool.touch()
    tool.chmod(0o755)
    found = tools(here)
    assert found.verdict is Verdict.WARNING
    assert found.detail.startswith("neuron-monitor not found")


class TestCores:
    def test_those_that_nobody_has_are_ours(self, tmp_path: Path) -> None:
        found = cores(inf1(4), host(tmp_path), 16)
        assert (found.verdict, found.data["cores"]) == (Verdict.OK, list(range(16)))

    def test_whoever_owns_them_is_named(self, tmp_path: Path) -> None:
        found = cores(inf1(2, Process(4711, "python serve.py")), host(tmp_path), None)
        assert found.is_failed
        assert "pid 4711 (python serve.py) on device 0" in found.detail
        assert "NEURON_RT_VISIBLE_CORES" in found.remedy

    def test_whoever_shares_a_chip_may_have_its_other_cores(self, tmp_path: Path) -> None:
        taken = inf1(1, Process(4711, "other"))
        found = cores(taken, host(tmp_path, NEURON_RT_VISIBLE_CORES="0-1"), 2)
        assert (found.verdict, found.data["owners"]) == (Verdict.WARNING, ["pid 4711 (other) on device 0"])
        assert cores(taken, host(tmp_path, NEURON_RT_VISIBLE_CORES="0-3"), 2).is_failed

    def test_an_owner_elsewhere_does_not_matter(self, tmp_path: Path) -> None:
        taken = [*inf1(1), Device(1, (4, 5, 6, 7), (Process(4711, "other"),))]
        assert cores(taken, host(tmp_path, NEURON_RT_VISIBLE_CORES="0-3"), None).verdict is Verdict.OK

    def test_too_few_say_how_many_and_why(self, tmp_path: Path) -> None:
        found = cores(inf1(4), host(tmp_path, NEURON_RT_VISIBLE_CORES="0-7"), 16)
        assert found.is_failed
        assert "8 to use (0-7: NEURON_RT_VISIBLE_CORES=0-7), --cores asks for 16" in found.detail
        assert "4 to use (0-3: all that are here)" in cores(inf1(), host(tmp_path), 5).detail

    @pytest.mark.parametrize("text", ["0-4", "a"])
    def test_a_list_of_cores_that_can_not_be_is_quoted(self, tmp_path: Path, text: str) -> None:
        found = cores(inf1(), host(tmp_path, NEURON_RT_VISIBLE_CORES=text), None)
        assert found.is_failed
        assert f"NEURON_RT_VISIBLE_CORES={text}" in found.detail
