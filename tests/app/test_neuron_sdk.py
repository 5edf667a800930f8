"""Whether the SDK that a target needs is there, told without importing any."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from app.neuron_sdk import SDKS, NeuronSdk

INF1 = SDKS["inf1"]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the import path, as an installation's."""
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def install(site: Path, sdk: NeuronSdk, version: str) -> None:
    (site / sdk.module).mkdir()
    (site / sdk.module / "__init__.py").write_text("raise AssertionError('nobody should import it to look at it')")
    metadata = site / f"{sdk.distribution.replace('-', '_')}-{version}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {sdk.distribution}\nVersion: {version}\n")


@pytest.mark.parametrize("target", SDKS)
def test_one_that_is_there_is_used_and_not_imported(site: Path, target: str) -> None:
    install(site, SDKS[target], "1.13.1.2.11.13.0")
    assert SDKS[target].problem() is None
    assert SDKS[target].is_installed
    assert SDKS[target].module not in sys.modules


@pytest.mark.parametrize("target", SDKS)
def test_one_that_is_not_says_how_to_get_it(target: str) -> None:
    problem = SDKS[target].problem()
    assert problem is not None
    assert problem.startswith(f"{SDKS[target].distribution} isn't installed; install it with: ")
    assert "--index-url https://pip.repos.neuron.amazonaws.com --extra-index-url https://pypi.org/simple" in problem
    assert not SDKS[target].is_installed


def test_pypis_placeholder_is_told_from_the_sdk(site: Path) -> None:
    install(site, INF1, "1.0")
    problem = INF1.problem()
    assert problem is not None
    assert "PyPI's empty placeholder" in problem
    assert "pip uninstall -y torch-neuron && pip install --index-url https://pip.repos" in problem


def test_the_other_generations_is_no_help_and_said_to_be_there(site: Path) -> None:
    install(site, SDKS["inf2"], "2.9.0.2.13")
    problem = INF1.problem()
    assert problem is not None
    assert "torch-neuronx, which is, serves Inferentia 2 (target inf2) only" in problem


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        (
            "libnrt.so.1: cannot open shared object file",
            "for Inferentia 2 install aws-neuronx-runtime-lib, and set LD_LIBRARY_PATH=",
        ),
        ("Descriptors cannot not be created directly.", "pip install 'protobuf<3.20'"),
        ("undefined symbol: _ZN3c10", "see constraints/inf1.txt"),
    ],
)
def test_an_import_that_fails_says_what_to_do(said: str, remedy: str) -> None:
    problem = INF1.import_problem(OSError(said))
    assert problem.startswith(f"torch-neuron is installed and can't be imported: {said}; ")
    assert remedy in problem
