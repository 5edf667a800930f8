"""What any target needs of the machine, told by the kernel's files."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.tools.doctor.check import Verdict
from app.tools.doctor.host import Host
from app.tools.doctor.machine import computer, instruction_set, open_files, shared_memory


def host(folder: Path, cpuinfo: str, **files: str) -> Host:
    (folder / "proc").mkdir()
    (folder / "proc/cpuinfo").write_text(cpuinfo)
    for name, text in files.items():
        (folder / "proc" / name).write_text(text)
    return Host(environ={}, dev=folder / "dev", proc=folder / "proc", sysfs=folder / "sys", neuron=folder / "neuron")


def test_the_computer_is_named_by_instance_cpu_and_memory(tmp_path: Path) -> None:
    here = host(tmp_path, "processor: 0\nmodel name\t: Xeon 8259CL\n", meminfo="MemTotal:  50331648 kB\n")
    (tmp_path / "sys/devices/virtual/dmi/id").mkdir(parents=True)
    (tmp_path / "sys/devices/virtual/dmi/id/product_name").write_text("inf1.6xlarge\n")
    found = computer(here)
    assert found.verdict is Verdict.NOTE
    assert found.detail.startswith("inf1.6xlarge, Xeon 8259CL, ")
    assert "48.0 GiB" in found.detail


@pytest.mark.parametrize(
    ("flags", "verdict", "said"),
    [
        ("flags : avx2 avx512_vnni amx_int8", Verdict.OK, "AMX"),
        ("flags : avx2 avx512_vnni", Verdict.OK, "AVX-512 VNNI"),
        ("Features : asimd asimddp", Verdict.OK, "dot product"),
        ("flags : sse4_2 avx2", Verdict.WARNING, "AVX2 only"),
        ("nothing", Verdict.WARNING, "neither AVX2 nor NEON"),
    ],
)
def test_int8_wants_its_own_instructions(tmp_path: Path, flags: str, verdict: Verdict, said: str) -> None:
    found = instruction_set(host(tmp_path, flags))
    assert found.verdict is verdict
    assert said in found.detail


@pytest.mark.parametrize(
    ("limit", "verdict"), [(256, Verdict.WARNING), (1024, Verdict.WARNING), (1025, Verdict.OK), (-1, Verdict.OK)]
)
def test_a_connection_is_an_open_file(limit: int, verdict: Verdict) -> None:
    assert open_files(limit).verdict is verdict


def test_without_shared_memory_it_says_how_a_container_gets_it(tmp_path: Path) -> None:
    assert shared_memory(tmp_path).verdict is Verdict.OK
    found = shared_memory(tmp_path / "absent")
    assert found.verdict is Verdict.WARNING
    assert "--shm-size" in found.remedy
