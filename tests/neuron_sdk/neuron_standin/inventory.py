"""What ``neuron-ls -j`` says."""

from __future__ import annotations

from typing import Any

from neuron_standin.reservation import owner, owner_command
from neuron_standin.settings import Settings, read_settings, setting


class NoDevicesError(Exception):
    """Its text is the line that the tool leaves on stderr, with exit status 1 and nothing on stdout."""


def list_devices() -> list[dict[str, Any]]:
    settings = read_settings()
    if not settings.devices:
        raise NoDevicesError(
            'time="2025-07-01T00:00:00Z" level=fatal msg="Failed to load MLA system information" '
            'error="failed to discover Neuron devices"'
        )
    return [_device(settings, device) for device in range(settings.devices)]


def _device(settings: Settings, device: int) -> dict[str, Any]:
    first = device * settings.cores_a_device
    cores = list(range(first, first + settings.cores_a_device))
    neighbours = [near % settings.devices for near in (device - 1, device + 1)]
    found: dict[str, Any] = {
        "neuron_device": device,
        "bdf": f"00:{0x1C + device:02x}.0",
        # Not an empty list where the chip is alone.
        "connected_to": sorted(set(neighbours)) if settings.devices > 1 else None,
        "nc_count": settings.cores_a_device,
        "memory_size": settings.cores_a_device * settings.core_bytes,
        "neuron_processes": _processes(settings, cores),
    }
    if setting("TOOLS") != "old":  # fields of 2025
        found |= {"cpu_affinity": "0-23", "numa_node": "0", "neuroncore_ids": cores}
    return found


def _processes(settings: Settings, cores: list[int]) -> list[dict[str, Any]]:
    found = {}
    for core in cores:
        if (pid := owner(settings.state, core)) is not None:
            command = owner_command(settings.state, core)
            found[pid] = {"pid": pid, "command": command, "neuron_runtime_version": "2.20.0.0"}
    return list(found.values())
