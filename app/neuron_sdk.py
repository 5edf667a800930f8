"""The two Neuron SDKs: which serves which target, and whether the one that is wanted is really installed.

Imports neither of them: the supervisor asks too, and whoever imports an SDK may take every core of the machine.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec


@dataclass(frozen=True, slots=True)
class NeuronSdk:
    """An SDK: its ``target`` here and its ``chip``, what it is imported and installed as, a chip's number of cores."""

    target: str
    chip: str
    module: str
    distribution: str
    pins: str
    cores_per_device: int

    @property
    def is_installed(self) -> bool:
        return self.problem() is None

    def problem(self) -> str | None:
        """Why it can't be used, in a sentence that says what to do; None when it can."""
        if is_placeholder(_version(self.distribution)):
            return (
                f"the {self.distribution} that is installed is PyPI's empty placeholder; remove it, then install the "
                f"SDK from AWS's repository: {self._install}"
            )
        if sys.modules.get(self.module) is not None or find_spec(self.module) is not None:
            return None
        other = next(sdk for sdk in SDKS.values() if sdk is not self)
        hint = ""
        if find_spec(other.module) is not None:
            hint = f"{other.distribution}, which is, serves {other.chip} (target {other.target}) only; "
        return f"{self.distribution} isn't installed; {hint}install it with: {self._install}"

    def import_problem(self, error: Exception) -> str:
        """What ``error``, which importing the SDK raised, means and what to do about it."""
        said = f"{self.distribution} is installed and can't be imported: {error}"
        remedy = next((remedy for words, remedy in _REMEDIES if words in str(error)), "")
        return f"{said}; {remedy or f'install what was tried together, see constraints/{self.target}.txt'}"

    @property
    def _install(self) -> str:
        return (
            f"pip uninstall -y {self.distribution} && pip install --index-url https://pip.repos.neuron.amazonaws.com "
            f"--extra-index-url https://pypi.org/simple '{self.pins}'"
        )


# By what an import that fails says.
_REMEDIES = (
    (
        "libnrt",
        "the Neuron runtime isn't found: Inferentia 1's is in the SDK's wheel, so install that again; for Inferentia 2 "
        "install aws-neuronx-runtime-lib, and set LD_LIBRARY_PATH=/opt/aws/neuron/lib",
    ),
    ("Descriptors cannot", "the protobuf that is installed is too new for it: pip install 'protobuf<3.20'"),
)

SDKS = {
    sdk.target: sdk
    for sdk in (
        NeuronSdk("inf1", "Inferentia 1", "torch_neuron", "torch-neuron", "torch-neuron==1.13.1.*", 4),
        NeuronSdk("inf2", "Inferentia 2", "torch_neuronx", "torch-neuronx", "torch-neuronx==2.9.*", 2),
    )
}


def is_placeholder(found: str | None) -> bool:
    """Whether a version is what PyPI has under the names of SDKs and compilers, which are in AWS's repository only."""
    return found is not None and (found in ("1.0", "1.0.0") or found.startswith("1.0.post"))


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
