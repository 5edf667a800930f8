"""What is pinned for each target agrees with what pyproject.toml asks for, and with the stack that AWS froze."""

from __future__ import annotations

import re
import sys
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
# PyPI has an empty package under each of these names: they come from AWS's own repository.
FROM_AWS = {"torch-neuron", "neuron-cc", "torch-neuronx", "neuronx-cc"}
# Lock file -> the Python it is for, and the extras that it pins.
LOCKS = {
    "serve-cpu": ("3.10", ["cpu", "load", "s3"]),
    "serve-inf1": ("3.10", ["load", "s3"]),
    "compile-inf1": ("3.10", ["load", "s3", "compile-inf1"]),
    "serve-inf2": ("3.12", ["load", "s3"]),
    "compile-inf2": ("3.12", ["load", "s3", "compile-inf2"]),
}


def project() -> dict[str, Any]:
    document: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return document


def requirements(name: str) -> dict[str, Requirement]:
    """The lines of a constraints file for the Python that it is for, by package."""
    python = LOCKS[name][0] if name in LOCKS else "3.10"
    environment = {"python_version": python, "python_full_version": f"{python}.0", "sys_platform": "linux"}
    text = (ROOT / "constraints" / f"{name}.txt").read_text(encoding="utf-8")
    lines = re.findall(r"^[a-z0-9][^\\\n]*", text, re.MULTILINE)
    found = [Requirement(line) for line in lines]
    return {each.name: each for each in found if each.marker is None or each.marker.evaluate(environment)}


def pinned(name: str) -> dict[str, str]:
    """package -> version."""
    return {package: str(each.specifier).removeprefix("==") for package, each in requirements(name).items()}


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_pins_every_package_that_the_project_asks_for_and_in_its_range(lock: str) -> None:
    extras = project()["optional-dependencies"]
    pins = pinned(lock)
    for requirement in map(Requirement, chain(project()["dependencies"], *(extras[name] for name in LOCKS[lock][1]))):
        assert pins[requirement.name] in requirement.specifier, f"{lock} has another {requirement}"


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_has_a_hash_for_each_of_its_lines(lock: str) -> None:
    text = (ROOT / "constraints" / f"{lock}.txt").read_text(encoding="utf-8")
    entries = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
    assert entries
    assert all("==" in entry and "--hash=sha256:" in entry for entry in entries)


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
def test_what_serves_on_a_chip_is_part_of_what_compiles_for_it(chip: str) -> None:
    assert pinned(f"serve-{chip}").items() < pinned(f"compile-{chip}").items()


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
@pytest.mark.parametrize("use", ["serve", "compile"])
def test_a_lock_keeps_to_the_stack_of_its_chip(chip: str, use: str) -> None:
    stack = requirements(chip)
    pins = pinned(f"{use}-{chip}")
    for package in stack.keys() & pins.keys():
        assert pins[package] in stack[package].specifier


@pytest.mark.parametrize("lock", LOCKS)
def test_no_lock_takes_from_pypi_what_only_aws_has(lock: str) -> None:
    assert not FROM_AWS & pinned(lock).keys()


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
def test_the_readme_says_which_file_is_for_what(chip: str) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for use, name in [("serving", "serve-"), ("compiling, and serving too", "compile-"), ("AWS's own packages", "")]:
        (row,) = re.findall(rf"^\| {use} \| .*$", readme, re.MULTILINE)
        assert f"`constraints/{name}{chip}.txt`" in row


@pytest.mark.parametrize(("chip", "package"), [("inf1", "torch-neuron"), ("inf2", "torch-neuronx")])
def test_the_sdk_is_pinned_to_one_version_which_the_extra_allows_and_whose_torch_is_pinned(
    chip: str, package: str
) -> None:
    stack = requirements(chip)
    version = str(stack[package].specifier).removeprefix("==")
    extra = next(each for each in map(Requirement, project()["optional-dependencies"][chip]) if each.name == package)
    assert version in extra.specifier
    torch = ".".join(version.split(".")[:3])  # an SDK's version begins with that of the torch it is for
    assert torch in stack["torch"].specifier


def test_inferentia_1_has_the_numpy_torch_and_protobuf_that_its_sdk_asks_for() -> None:
    pins = pinned("compile-inf1")
    assert pins["numpy"] == "1.23.5"
    assert pins["protobuf"] == "3.19.5"
    assert pins["transformers"].startswith("4.41.")
    assert str(requirements("inf1")["torch"].specifier) == "==1.13.1"
