"""What is installed, against what a target was proved with."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from packaging.requirements import Requirement

from app.bundle import TargetManifest
from app.neuron_sdk import SDKS, is_placeholder
from app.tools.doctor.check import Check, failed, ok, skipped, warning
from app.tools.doctor.host import Host

# As constraints/inf1.txt and inf2.txt have it (a test holds them equal): who serves, and what compiling needs besides.
SERVING = {
    "inf1": ("torch-neuron==1.13.1.2.11.13.0", "torch==1.13.1", "numpy>=1.22,<1.24"),
    "inf2": ("torch-neuronx==2.9.0.2.15.32035", "torch>=2.9,<2.10"),
}
COMPILING = {
    "inf1": ("neuron-cc==1.24.0.0", "protobuf==3.19.5", "transformers>=4.41,<4.42"),
    "inf2": ("transformers>=4.57,<6",),
}
COMPILERS = {"inf1": "neuron-cc", "inf2": "neuronx-cc"}
PYTHONS = {"inf1": ((3, 9), (3, 10)), "inf2": ((3, 11), (3, 12), (3, 13))}
ENGINES = {"cpu": "openvino", "torch": "torch"}
INSTALL = {"cpu": "make install, or pip install -e '.[cpu]'", "torch": "make install, or pip install -e '.[train]'"}


def installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def python(target: str, host: Host) -> Check:
    """Of the SDK's wheels; the service itself wants 3.10."""
    known = [each for each in PYTHONS[target] if each >= (3, 10)]
    here, listed = ".".join(map(str, host.python)), ", ".join(".".join(map(str, each)) for each in known)
    if host.python in known:
        return ok("python", f"{here}, for which {SDKS[target].distribution} has wheels")
    return warning(
        "python",
        f"{here}; {SDKS[target].distribution} has wheels for {listed}",
        f"make the environment with one of those: python{listed.split(', ')[-1]} -m venv",
    )


def sdk(target: str) -> Check:
    """It is installed, and isn't the empty package that PyPI has under its name."""
    wanted = SDKS[target]
    problem = wanted.problem()
    found = installed(wanted.distribution)
    if problem is not None:
        what, _, remedy = problem.partition("; ")
        return failed("neuron sdk", what, remedy or problem, version=found)
    return ok("neuron sdk", f"{wanted.distribution} {found or 'of unknown version'}", version=found)


def compiler(target: str) -> Check:
    name = COMPILERS[target]
    found = installed(name)
    if found is None:
        return skipped("neuron compiler", f"no {name} here; compiling needs it, serving doesn't")
    if is_placeholder(found):
        return failed(
            "neuron compiler",
            f"the {name} that is installed is PyPI's empty placeholder",
            f"pip uninstall -y {name}, then install it from https://pip.repos.neuron.amazonaws.com",
            version=found,
        )
    return ok("neuron compiler", f"{name} {found}", version=found)


def pins(target: str) -> Check:
    """Compiling's only where its compiler is there."""
    asked = SERVING[target] + (COMPILING[target] if installed(COMPILERS[target]) else ())
    found = {requirement.name: installed(requirement.name) for requirement in map(Requirement, asked)}
    wrong = [
        f"{requirement.name} {found[requirement.name] or 'missing'} instead of {requirement.specifier}"
        for requirement in map(Requirement, asked)
        if not _satisfies(requirement, found[requirement.name])
    ]
    if wrong:
        return warning(
            "pins",
            "; ".join(wrong),
            f"install what was tried together: pip install -c constraints/{target}.txt, and the lock of "
            f"constraints/serve-{target}.txt",
            versions=found,
        )
    return ok("pins", f"as in constraints/{target}.txt", versions=found)


def engine(target: str) -> Check:
    """Of the targets that run on the CPU."""
    package = ENGINES[target]
    found = installed(package)
    if found is None:
        return failed("engine", f"{package} isn't installed, which target {target} runs on", INSTALL[target])
    return ok("engine", f"{package} {found}", versions={package: found})


def made_by(manifest: TargetManifest) -> Check:
    """The artefact's makers against what is here: the runtime reads what an older compiler wrote, not a newer one's."""
    pairs = {package: (made, installed(package)) for package, made in manifest.engine.items()}
    differ = [
        f"{package} {made}, here {here}"
        for package, (made, here) in pairs.items()
        if here is not None and not (made.startswith(here) or here.startswith(made))  # builds have suffixes
    ]
    if differ:
        return warning(
            "artefact",
            f"target {manifest.target} was compiled by {'; '.join(differ)}",
            "the canary below decides; where it fails, compile again with what is installed here",
            engine=manifest.engine,
        )
    made = ", ".join(f"{package} {version}" for package, version in manifest.engine.items())
    return ok(
        "artefact",
        f"target {manifest.target} in {manifest.precision}, rows of {', '.join(map(str, manifest.buckets))}, by {made}",
        engine=manifest.engine,
    )


def _satisfies(requirement: Requirement, found: str | None) -> bool:
    return found is not None and requirement.specifier.contains(found, prereleases=True)
