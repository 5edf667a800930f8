"""Every check in its order: a machine that lacks something is told so before anything is loaded on it."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from app.bundle import Bundle
from app.cpu_budget import cpu_budget, share_out
from app.neuron_devices import NUM_CORES, VISIBLE_CORES, Device, format_cores, visible_cores
from app.neuron_sdk import SDKS
from app.settings import Settings
from app.tools.doctor import bundles, compiling, machine, neuron, packages, replicas, serving
from app.tools.doctor.check import Check, Verdict, failed, note, skipped
from app.tools.doctor.host import Host


@dataclass(frozen=True, slots=True)
class Asked:
    """``settings`` are the service's own, with bundle and target; the rest is the load, and how many cores must be."""

    settings: Settings
    seconds: float
    rate: float | None
    port: int
    cores: int | None


class Examination:
    """Runs the checks; ``target`` is the one that was examined in the end."""

    def __init__(self, asked: Asked, host: Host, *, tell: Callable[[str], None] = lambda _: None) -> None:
        self.target: str | None = None
        self._asked = asked
        self._host = host
        self._tell = tell

    def run(self) -> Iterator[Check]:
        with tempfile.TemporaryDirectory(prefix="query-intent-doctor-") as copies:
            yield from self._run(Path(copies))

    def _run(self, copies: Path) -> Iterator[Check]:
        yield machine.computer(self._host)
        yield machine.open_files()
        yield machine.shared_memory()
        wanted = self._asked.settings.target
        found = neuron.devices(self._host)
        check, bundle = bundles.read(self._asked.settings.bundle, copies)
        yield check
        if wanted in SDKS or (wanted == "auto" and found):
            target = wanted if wanted in SDKS else neuron.target_of(found) or next(iter(SDKS))
            lacks = False
            for check in self._neuron(found, target):
                lacks |= check.is_failed
                yield check
            if not lacks:
                yield from self._on_chips(bundle, found, target)
                return
            yield note("target", f"{target} can't run here; what follows is target cpu instead")
            wanted = "cpu"
        elif wanted == "auto":
            yield from map(_as_note, self._neuron(found, next(iter(SDKS))))
        if bundle is not None:
            yield from self._on_cpu(bundle, _cpu_target(bundle) if wanted == "auto" else wanted)

    def _neuron(self, found: list[Device], target: str) -> Iterator[Check]:
        """What a chip needs around it."""
        yield neuron.chips(found)
        yield neuron.driver(self._host, found, target)
        yield neuron.tools(self._host)
        if found:
            if neuron.target_of(found) not in (target, None):
                yield failed("target", f"{target} doesn't run on these chips", f"ask for {neuron.target_of(found)}")
            yield neuron.cores(found, self._host, self._asked.cores)
        yield packages.sdk(target)
        if packages.installed(SDKS[target].distribution) is not None:
            yield packages.python(target, self._host)
            yield packages.compiler(target)
            yield packages.pins(target)

    def _on_chips(self, bundle: Bundle | None, found: list[Device], target: str) -> Iterator[Check]:
        cores = visible_cores(found, self._host.environ)
        if packages.installed(packages.COMPILERS[target]) is not None:
            self._tell("compiling a tiny model")
            yield compiling.tiny_model(target, cores[0], self._host.environ)
        else:
            yield skipped("tiny compile", "no compiler")
        if bundle is None:
            return
        failure, manifest = bundles.target(bundle, target)
        if manifest is None:
            assert failure is not None
            yield failure
            return
        yield packages.made_by(manifest)
        each = int(manifest.options.get("pipeline_cores", 1))
        groups = [cores[start : start + each] for start in range(0, len(cores) - each + 1, each)]
        if not groups:
            yield failed(
                "canary",
                f"a copy of the model takes {each} cores, there are {len(cores)} to use: {format_cores(cores)}",
                f"leave it more cores ({VISIBLE_CORES}), or compile it with --neuroncore-pipeline-cores 1",
            )
            return
        environ = {name: value for name, value in self._host.environ.items() if name != NUM_CORES}
        environ[VISIBLE_CORES] = format_cores(cores)
        yield from self._prove(bundle, target, [f"core {format_cores(group)}" for group in groups], environ)

    def _on_cpu(self, bundle: Bundle, target: str) -> Iterator[Check]:
        if target in packages.ENGINES:
            yield machine.instruction_set(self._host)
            yield (engine := packages.engine(target))
            failure, manifest = bundles.target(bundle, target)
            if manifest is None:
                assert failure is not None
                yield failure
            else:
                yield packages.made_by(manifest)
            if engine.is_failed or manifest is None:
                return
        settings = self._asked.settings
        workers, each = share_out(cpu_budget(), workers=settings.workers, replicas=settings.replicas)
        if self._asked.cores is not None and workers * each < self._asked.cores:
            yield failed(
                "cores",
                f"{workers} workers of {each} replicas are {workers * each}, --cores asks for {self._asked.cores}",
                "take a machine, or a CPU limit of the container, with more; or ask for fewer",
            )
            return
        names = [f"replica {number}" for number in range(workers * each)]
        yield from self._prove(bundle, target, names, dict(self._host.environ))

    def _prove(self, bundle: Bundle, target: str, names: list[str], environ: Mapping[str, str]) -> Iterator[Check]:
        """The model on every core, then a service under load; each only where what it stands on holds."""
        self.target = target
        self._tell(f"loading {len(names)} replicas, one after another")
        found = replicas.probe(bundle.path, target, names, environ)
        yield replicas.canary(found, names)
        if found.rows_ms:
            yield (latency := replicas.latency(found, self._asked.settings.slo_ms))
        if found.errors or latency.is_failed or not self._asked.seconds:
            yield skipped("load", "not asked for" if not self._asked.seconds else "what it would run on isn't well")
            return
        rate = self._asked.rate or serving.rate_for(replicas.tokens_per_second(found))
        self._tell(f"serving {rate:g} queries a second for {self._asked.seconds:g} s")
        asked = serving.Asked(
            bundle=bundle.path,
            target=target,
            port=self._asked.port,
            seconds=self._asked.seconds,
            slo_ms=self._asked.settings.slo_ms,
        )
        yield from serving.serve_and_load(asked, rate, self._host.environ)


def _as_note(check: Check) -> Check:
    """What a machine lacks for a target that nobody asked for."""
    return dataclasses.replace(check, verdict=Verdict.NOTE) if check.verdict is not Verdict.OK else check


def _cpu_target(bundle: Bundle) -> str:
    return next((name for name in packages.ENGINES if name in bundle.targets), "cpu")
