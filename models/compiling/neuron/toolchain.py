"""What compiles for each generation of chips, and whether all of it is installed."""

from __future__ import annotations

import importlib
import importlib.metadata
from types import ModuleType
from typing import NamedTuple

from app.neuron_sdk import SDKS
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
    except ImportError as error:
        raise CompileError(
            f"target {target}: {sdk.distribution} is installed and can't be imported: {error}"
        ) from error


def versions(target: str) -> dict[str, str]:
    """Everything that makes an artefact, by name. Raises ``CompileError`` when some of it isn't there."""
    import torch

    module, sdk, compiler = import_sdk(target), SDKS[target], COMPILERS[target]
    found = _version(compiler.distribution)
    if found is None:
        raise CompileError(
            f"target {target}: {sdk.distribution} is installed, its compiler is not; install it with: pip install "
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
