"""How long the start took, as metrics: from the process's own, and from the machine's boot."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from app.metrics import PREFIX

# A machine that has been up for longer was not started for this task.
NEW_MACHINE_S = 3600.0


def seconds_since_boot() -> float | None:
    """Of the kernel, a container's host, that is; None where the system doesn't say."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return None if clock is None else time.clock_gettime(clock)


class StartTimes(Collector):
    """There is nothing to tell before ``note_ready``.

    On a new machine the seconds since its boot hold all that stands between an instance and its first answer but for
    the request of it and the balancer's health checks: boot, agent, pull of the image, load of the model.
    """

    def __init__(self, *, since_boot: Callable[[], float | None] = seconds_since_boot) -> None:
        self._since_boot = since_boot
        self._gauges: list[Metric] = []

    def note_ready(self, start_s: float) -> None:
        """All replicas are warm, ``start_s`` seconds after the first worker was started."""
        self._gauges = [_gauge("start_to_ready_seconds", "From the start of the workers to ready", start_s)]
        boot_s = self._since_boot()
        if boot_s is not None and boot_s < NEW_MACHINE_S:
            self._gauges.append(_gauge("boot_to_ready_seconds", "From the boot of a new machine to ready", boot_s))

    def collect(self) -> Iterator[Metric]:
        yield from self._gauges


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(PREFIX + name, text, value=value)
