"""What is installed, told by metadata that is put on the path."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.requirements import Requirement

from app.bundle import TargetManifest
from app.neuron_sdk import SDKS
from app.tools.doctor.check import Verdict
from app.tools.doctor.host import Host
from app.tools.doctor.packages import COMPILING, SERVING, compiler, engine, made_by, pins, python, sdk

STACK = {"torch_neuron": "1.13.1.2.11.13.0", "torch": "1.13.1+cpu", "numpy": "1.23.5"}
CONSTRAINTS = Path(__file__).parents[4] / "constraints"


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, **versions: str) -> None:
    """As if these packages (their names with _ for -) were installed, before all others."""
    for name, version in versions.items():
        metadata = folder / f"{name}-{version}.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {version}\n"
        )
    monkeypatch.syspath_prepend(str(folder))


@pytest.mark.parametrize("target", ["inf1", "inf2"])
def test_the_pins_are_those_of_the_constraints(target: str) -> None:
    lines = (CONSTRAINTS / f"{target}.txt").read_text(encoding="utf-8").splitlines()
    asked = {str(Requirement(line)) for line in lines if not line.startswith("#")}
    assert {str(Requirement(line)) for line in (*SERVING[target], *COMPILING[target])} == asked


class TestSdk:
    def test_one_that_is_missing_says_where_it_comes_from(self) -> None:
        found = sdk("inf1")
        assert found.is_failed
        assert "torch-neuron isn't installed" in found.detail
        assert "pip.repos.neuron.amazonaws.com" in found.remedy

    def test_pypis_empty_package_is_told_from_the_real_one(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        install(tmp_path, monkeypatch, torch_neuron="1.0")
        found = sdk("inf1")
        assert found.is_failed
        assert "placeholder" in found.detail

    @pytest.mark.parametrize(("here", "target"), [((3, 10), "inf1"), ((3, 11), "inf2")])
    def test_it_has_wheels_for_some_pythons_only(self, here: tuple[int, int], target: str) -> None:
        """Of the pinned versions: SDK 2.31.1 has none of Inferentia 2 for 3.10 any more."""
        for each in SDKS:
            assert python(each, Host(python=here)).verdict is (Verdict.OK if each == target else Verdict.WARNING)


class TestCompiler:
    def test_serving_needs_none(self) -> None:
        assert compiler("inf1").verdict is Verdict.SKIPPED

    @pytest.mark.parametrize("version", ["1.0", "1.0.post1"])
    def test_pypis_empty_package_is_told_from_the_real_one(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
    ) -> None:
        install(tmp_path, monkeypatch, neuron_cc=version)
        assert compiler("inf1").is_failed

    def test_a_real_one_is_well(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        install(tmp_path, monkeypatch, neuron_cc="1.24.0.0")
        assert compiler("inf1").verdict is Verdict.OK


class TestPins:
    def test_the_stack_that_was_tried_is_well(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        install(tmp_path, monkeypatch, **STACK)
        assert pins("inf1").verdict is Verdict.OK

    def test_each_that_differs_is_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        install(tmp_path, monkeypatch, **(STACK | {"numpy": "1.26.4"}))
        found = pins("inf1")
        assert found.verdict is Verdict.WARNING
        assert "numpy 1.26.4 instead of" in found.detail
        assert "torch" not in found.detail

    def test_compilings_count_where_its_compiler_is(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        install(tmp_path, monkeypatch, **STACK, neuron_cc="1.24.0.0", protobuf="4.1", transformers="4.41.2")
        assert pins("inf1").detail == "protobuf 4.1 instead of ==3.19.5"


def test_an_engine_that_is_missing_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, openvino="2026.4.1")
    assert engine("cpu").detail == "openvino 2026.4.1"
    monkeypatch.setattr("sys.path", [])
    found = engine("cpu")
    assert found.is_failed
    assert "pip install -e '.[cpu]'" in found.remedy


@pytest.mark.parametrize(
    ("made", "here", "verdict"),
    [
        ("2026.4.1-22982-release", "2026.4.1", Verdict.OK),
        ("2026.4.1", "2026.5.0", Verdict.WARNING),
    ],
)
def test_an_artefact_by_another_compiler_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: str, here: str, verdict: Verdict
) -> None:
    install(tmp_path, monkeypatch, openvino=here)
    manifest = TargetManifest(target="cpu", engine={"openvino": made}, precision="int8", buckets=[8], tolerance=0.1)
    assert made_by(manifest).verdict is verdict
