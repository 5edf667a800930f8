"""An SDK that isn't there, or isn't what its name says, is explained with the command that installs the real one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="compiling needs torch")

from models.compiling.neuron.toolchain import import_sdk, versions
from models.compiling.order import CompileError
from tests.neuron import PLACEHOLDER

AWS = r"pip\.repos\.neuron\.amazonaws\.com"


@pytest.fixture(autouse=True)
def nothing_stays_imported(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delitem(sys.modules, "torch_neuron", raising=False)
    yield
    sys.modules.pop("torch_neuron", None)


def install(folder: Path, package: str, version: str, module: str = "") -> None:
    info = folder / f"{package.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    (folder / f"{package.replace('-', '_')}.py").write_text(module)


@pytest.mark.parametrize(("target", "package"), [("inf1", "torch-neuron"), ("inf2", "torch-neuronx")])
def test_a_missing_sdk_is_named(target: str, package: str) -> None:
    with pytest.raises(CompileError, match=rf"target {target}: {package} isn't installed.*{AWS}"):
        versions(target)


def test_pypi_s_placeholder_is_no_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PLACEHOLDER))
    with pytest.raises(CompileError, match=rf"PyPI's empty placeholder.*{AWS}"):
        import_sdk("inf1")


def test_an_sdk_without_its_compiler_serves_and_can_t_compile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "torch-neuron", "1.13.1.2.11.13.0")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(
        CompileError, match=rf"its compiler is not; install it with: .*{AWS}.* 'neuron-cc\[tensorflow\]=="
    ):
        versions("inf1")


def test_an_sdk_that_breaks_says_what_it_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "torch-neuron", "1.13.1.2.11.13.0", "raise ImportError('libneuron: undefined symbol')")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(CompileError, match="is installed and can't be imported: libneuron: undefined symbol"):
        import_sdk("inf1")


def test_a_protobuf_that_is_too_new_for_the_sdk_is_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(
        tmp_path, "torch-neuron", "1.13.1.2.11.13.0", "raise TypeError('Descriptors cannot not be created directly')"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(CompileError, match=r"pip install 'protobuf<3\.20'"):
        versions("inf1")


def test_pypi_s_placeholder_is_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "torch-neuron", "1.13.1.2.11.13.0")
    install(tmp_path, "neuron-cc", "1.0.post1")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(CompileError, match=rf"PyPI's empty placeholder \(neuron-cc 1\.0\.post1\); install it.*{AWS}"):
        versions("inf1")


def test_versions_name_everything_that_made_an_artefact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    install(tmp_path, "torch-neuron", "1.13.1.2.11.13.0")
    install(tmp_path, "neuron-cc", "1.24.0.0")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert versions("inf1") == {
        "torch": torch.__version__,
        "torch-neuron": "1.13.1.2.11.13.0",
        "neuron-cc": "1.24.0.0",
    }
