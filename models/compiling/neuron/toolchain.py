"""What compiles for each generation of chips, and whether all of it is installed."""

from __future__ import annotations

import importlib
import importlib.metadata
from types import ModuleType
from typing import NamedTuple

from app.neuron_sdk import SDKS, is_placeholder
from models.compiling.order import CompileError


class Compiler(NamedTuple):
    """The compiler behind an SDK, which serving doesn't need: pip's name of it, and what to install."""

    distribution: str
    pins: str


COMPILERS = {
    # protobuf: neuron-cc's TensorFlow knows none newer.
    "inf1": Compiler("neuron-cc", "'neuron-cc[tensorflow]==1.24.0.0' 'protobuf<3.20' 'numpy<1.24'"),
    "inf2": Compiler("neuronx-cc", "'neuronx-cc==2.*'"),
}


def import_sdk(target: str) -> ModuleType:
    """The SDK. Raises ``CompileError`` that says how to install it, also where PyPI's placeholder is installed."""
    sdk = SDKS[target]
    if (problem := sdk.problem()) is not None:
        raise CompileError(f"target {target}: {problem}")
    try:
        return importlib.import_module(sdk.module)
    except Exception as error:  # a library that isn't found is an OSError, a protobuf too new a TypeError, …
        raise CompileError(f"target {target}: {sdk.import_problem(error)}") from error


def versions(target: str) -> dict[str, str]:
    """Everything that makes an artefact, by name. Raises ``CompileError`` when some of it isn't there."""
    import torch

    module, sdk, compiler = import_sdk(target), SDKS[target], COMPILERS[target]
    found = _version(compiler.distribution)
    if found is None or is_placeholder(found):
        lacks = "not" if found is None else f"PyPI's empty placeholder ({compiler.distribution} {found})"
        raise CompileError(
            f"target {target}: {sdk.distribution} is installed, its compiler is {lacks}; install it with: pip install "
            f"--extra-index-url https://pip.repos.neuron.amazonaws.com {compiler.pins}"
        )
    return {
        "torch": str(torch.__version__),
        sdk.distribution: _version(sdk.distribution) or str(getattr(module, "__version__", "unknown")),
        compiler.distribution: found,
    }


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
