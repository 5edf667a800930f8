"""Who computes where: the target that is served, and each worker's own slice of the machine's cores.

Decided once, by the supervisor, before anything imports an engine: a process that starts a Neuron runtime without a
slice takes every core there is, and keeps it until it ends.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from app.cpu_budget import cpu_budget, share_out
from app.errors import SettingsError
from app.neuron_devices import DEV, NUM_CORES, VISIBLE_CORES, Device, discover, format_cores, visible_cores
from app.neuron_sdk import SDKS, NeuronSdk
from app.settings import Settings

logger = logging.getLogger(__name__)

# Engines start thread pools of their own unless told not to; the replicas are the threads.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
# What else would say which cores a process takes, so that it can't contradict its slice.
OTHER_SLICES = (NUM_CORES, "NEURONCORE_GROUP_SIZES")
PROCESS_TAG = "NEURON_PROCESS_TAG"


@dataclass(frozen=True, slots=True)
class Placement:
    """``workers`` of ``replicas`` each, a replica taking ``span`` cores as one; ``slices`` are the Neuron workers'."""

    target: str  # "auto" where it is left to the engine
    workers: int
    replicas: int
    span: int = 1
    slices: list[list[int]] = field(default_factory=list)

    def environment(self, worker: int, environ: Mapping[str, str]) -> dict[str, str]:
        """Of the process of a worker."""
        if not self.slices:
            return {**environ, **ONE_THREAD}
        kept = {name: value for name, value in environ.items() if name not in OTHER_SLICES}
        own = {VISIBLE_CORES: format_cores(self.slices[worker]), PROCESS_TAG: f"query-intent-{worker}"}
        return kept | ONE_THREAD | own


def place(settings: Settings, bundle: Path, environ: Mapping[str, str], *, dev: Path = DEV) -> Placement:
    """Of a service of the ``bundle`` in that folder. Raises ``SettingsError`` where what is asked for isn't there."""
    wanted = SDKS.values() if settings.target == "auto" else [SDKS[settings.target]] if settings.target in SDKS else []
    for sdk in wanted:
        if settings.target == "auto" and not (_has_target(bundle, sdk) and sdk.is_installed):
            continue
        devices = discover(sdk.cores_per_device, dev=dev)
        if settings.target == "auto" and (not devices or _is_other_chip(devices, sdk)):
            continue
        return _place_on_cores(settings, bundle, sdk, devices, environ)
    if settings.placement == "data-parallel":
        raise SettingsError(
            f"QUERY_INTENT_PLACEMENT=data-parallel: only targets {' and '.join(SDKS)} have it, and "
            f"{settings.target} is none of them here"
        )
    workers, replicas = share_out(cpu_budget(), workers=settings.workers, replicas=settings.replicas)
    return Placement(settings.target, workers, replicas)


def _place_on_cores(
    settings: Settings, bundle: Path, sdk: NeuronSdk, devices: list[Device], environ: Mapping[str, str]
) -> Placement:
    if (problem := sdk.problem()) is not None:
        raise SettingsError(f"QUERY_INTENT_TARGET={sdk.target}: {problem}")
    if not devices:
        raise SettingsError(
            f"QUERY_INTENT_TARGET={sdk.target}: no Neuron device is here: neuron-ls lists none and there is no "
            "/dev/neuron0; load the driver (aws-neuronx-dkms), and give a container its devices (--device=/dev/neuron0)"
        )
    if _is_other_chip(devices, sdk):
        other = next(each for each in SDKS.values() if each is not sdk)
        raise SettingsError(
            f"QUERY_INTENT_TARGET={sdk.target}: the chips here have {other.cores_per_device} cores each, which is "
            f"{other.chip}; compile for it and serve with QUERY_INTENT_TARGET={other.target}"
        )
    cores = visible_cores(devices, environ)
    if settings.placement == "data-parallel":
        return _spread(settings, sdk, cores)
    cores_each = _pipeline_cores(bundle, sdk)
    copies = len(cores) // cores_each
    workers, replicas = share_out(copies, workers=settings.workers, replicas=settings.replicas)
    if workers * replicas > copies:
        raise SettingsError(
            f"{workers} workers (QUERY_INTENT_WORKERS) of {replicas} replicas (QUERY_INTENT_REPLICAS) need "
            f"{workers * replicas * cores_each} NeuronCores, there are {len(cores)}: {format_cores(cores)}"
        )
    return Placement(sdk.target, workers, replicas, slices=_slice(cores, workers, replicas * cores_each))


def _spread(settings: Settings, sdk: NeuronSdk, cores: list[int]) -> Placement:
    """One replica a worker, over all of its cores."""
    workers, span = share_out(len(cores), workers=settings.workers, replicas=0)
    if settings.replicas > 1 or workers * span > len(cores):
        raise SettingsError(
            f"QUERY_INTENT_PLACEMENT=data-parallel: a worker has one replica on all of its cores; there are "
            f"{len(cores)} for {workers} workers, and QUERY_INTENT_REPLICAS is {settings.replicas}"
        )
    return Placement(sdk.target, workers, 1, span, _slice(cores, workers, span))


def _slice(cores: list[int], workers: int, each: int) -> list[list[int]]:
    """Neighbours for each worker: as many as a chip has, they are a chip."""
    if (unused := cores[workers * each :]) != []:
        logger.warning("NeuronCores are left unused", extra={"cores": format_cores(unused)})
    return [cores[worker * each : (worker + 1) * each] for worker in range(workers)]


def _is_other_chip(devices: list[Device], sdk: NeuronSdk) -> bool:
    others = {each.cores_per_device for each in SDKS.values() if each is not sdk}
    return all(len(device.cores) in others and not device.logical for device in devices)


def _has_target(bundle: Path, sdk: NeuronSdk) -> bool:
    return (bundle / sdk.target / "target.json").is_file()


def _pipeline_cores(bundle: Path, sdk: NeuronSdk) -> int:
    """Cores that a copy of the compiled model takes; what is wrong with the file is for the worker to say."""
    try:
        return max(1, int(json.loads((bundle / sdk.target / "target.json").read_bytes())["options"]["pipeline_cores"]))
    except (OSError, ValueError, KeyError, TypeError):
        return 1
