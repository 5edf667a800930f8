"""Chips, driver, tools and who has the cores. Imports no SDK: whoever does may take every core of the machine."""

from __future__ import annotations

import re
import shutil

from app.errors import SettingsError
from app.neuron_devices import TOOLS, VISIBLE_CORES, Device, discover, format_cores, visible_cores
from app.neuron_sdk import SDKS
from app.tools.doctor.check import Check, failed, ok, warning
from app.tools.doctor.host import Host

# Drivers from 2.25 on know no Inferentia 1.
LAST_INF1_DRIVER = (2, 24)


def devices(host: Host) -> list[Device]:
    """Every chip; where the tools are missing and the kernel tells no core count, as Inferentia 1's."""
    return discover(SDKS["inf1"].cores_per_device, dev=host.dev, sysfs=host.neuron)


def target_of(found: list[Device]) -> str | None:
    """Which target the chips run, told by their number of cores."""
    counts = {len(device.cores) for device in found}
    return next((sdk.target for sdk in SDKS.values() if counts == {sdk.cores_per_device}), None)


def chips(found: list[Device]) -> Check:
    if not found:
        return failed(
            "neuron devices",
            "none: neuron-ls lists none and there is no /dev/neuron0",
            "start an inf1 or inf2 instance; on one, install the driver (aws-neuronx-dkms), and give a container its "
            "devices: --device=/dev/neuron0, linuxParameters.devices in the ECS task definition",
            devices=[],
        )
    data = [{"device": each.number, "cores": list(each.cores)} for each in found]
    target = target_of(found)
    cores = sum(len(each.cores) for each in found)
    if target is None:
        return failed(
            "neuron devices",
            f"{len(found)} chips with {', '.join(str(len(each.cores)) for each in found)} cores",
            f"targets are for {' and '.join(f'{sdk.chip} ({sdk.cores_per_device})' for sdk in SDKS.values())}",
            devices=data,
        )
    return ok("neuron devices", f"{len(found)} × {SDKS[target].chip}, {cores} cores", devices=data)


def driver(host: Host, found: list[Device], target: str) -> Check:
    version = Host.read(host.sysfs / "module/neuron/version")
    if not version and found:
        return warning(
            "neuron driver",
            "there are devices, but /sys/module/neuron/version can't be read",
            "ask the host: modinfo neuron; for Inferentia 1 it must be 2.24 or older",
        )
    if not version:
        return failed(
            "neuron driver",
            "the kernel has no module neuron",
            "on the host, not in the container: install aws-neuronx-dkms"
            f"{'=2.24.*' if target == 'inf1' else ''}, then modprobe neuron; see dmesg if it doesn't load",
        )
    numbers = tuple(map(int, re.findall(r"\d+", version)[:2]))
    if target == "inf1" and numbers > LAST_INF1_DRIVER:
        return failed(
            "neuron driver",
            f"{version} serves no Inferentia 1; 2.24 was the last that does",
            "install aws-neuronx-dkms=2.24.* and hold it there, then reload: rmmod neuron; modprobe neuron",
            version=version,
        )
    return ok("neuron driver", version, version=version)


def tools(host: Host) -> Check:
    path = host.environ.get("PATH", "")
    missing = [
        name
        for name in ("neuron-ls", "neuron-monitor")
        if not (shutil.which(name, path=path) or shutil.which(name, path=str(TOOLS)))
    ]
    if missing:
        return warning(
            "neuron tools",
            f"{' and '.join(missing)} not found, on PATH or in {TOOLS}: cores' owners and counters can't be seen",
            "install aws-neuronx-tools (=2.19.0.0 for Inferentia 1), and put it into the image as well",
        )
    return ok("neuron tools", "neuron-ls and neuron-monitor are there")


def cores(found: list[Device], host: Host, wanted: int | None) -> Check:
    """Which are ours to use, and that nobody else has them."""
    try:
        ours = visible_cores(found, host.environ)
    except SettingsError as error:
        return failed("neuron cores", str(error), f"unset {VISIBLE_CORES}, or name cores that are there")
    seen = format_cores(ours)
    if wanted is not None and len(ours) < wanted:
        why = f"{VISIBLE_CORES}={host.environ[VISIBLE_CORES]}" if VISIBLE_CORES in host.environ else "all that are here"
        return failed(
            "neuron cores",
            f"{len(ours)} to use ({seen or 'none'}: {why}), --cores asks for {wanted}",
            "take a larger instance, give the container every /dev/neuronN, or ask for fewer",
            cores=ours,
        )
    shared = [device for device in found if device.processes and set(device.cores) & set(ours)]
    holders = sorted({f"{process} on device {device.number}" for device in shared for process in device.processes})
    if any(set(device.cores) <= set(ours) for device in shared):
        return failed(
            "neuron cores",
            f"{len(ours)} to use ({seen}), but a core belongs to one process: {', '.join(holders)}",
            f"end it (a service that runs here?), or leave its cores out with {VISIBLE_CORES}",
            cores=ours,
            owners=holders,
        )
    if shared:  # a chip may be shared, and which of its cores a process has isn't known
        return warning(
            "neuron cores",
            f"{len(ours)} to use ({seen}), on chips of which others use cores, too: {', '.join(holders)}",
            "the canary below decides whether ours are free; where it fails, end the other, or choose other cores",
            cores=ours,
            owners=holders,
        )
    return ok("neuron cores", f"{len(ours)} to use ({seen}), nobody has them", cores=ours, owners=[])
