"""How long the start took, as metrics: from the process's own, and from the machine's boot."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from app.ecs_task import METADATA_URI, seconds_since_pull
from app.metrics import PREFIX

# A machine that has been up for longer was not started for this task.
NEW_MACHINE_S = 3600.0
# Nor one to which ECS sent the task later than this after its boot. The pull, which may be slow, comes after that.
PLACED_S = 300.0


def seconds_since_boot() -> float | None:
    """Of the kernel, a container's host, that is; None where the system doesn't say."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return None if clock is None else time.clock_gettime(clock)


class StartTimes(Collector):
    """There is nothing to tell before ``note_ready``.

    On a new machine the seconds since its boot hold all that stands between an instance and its first answer but for
    the request of it and the balancer's health checks: boot, agent, pull of the image, load of the model.
    """

    def __init__(
        self, *, since_boot: Callable[[], float | None] = seconds_since_boot, environ: Mapping[str, str] = os.environ
    ) -> None:
        self._since_boot = since_boot
        self._is_new = _is_new(since_boot(), environ)
        self._gauges: list[Metric] = []

    def note_ready(self, start_s: float) -> None:
        """All replicas are warm, ``start_s`` seconds after the first worker was started."""
        self._gauges = [_gauge("start_to_ready_seconds", "From the start of the workers to ready", start_s)]
        boot_s = self._since_boot()
        if boot_s is not None and self._is_new:
            self._gauges.append(_gauge("boot_to_ready_seconds", "From the boot of a new machine to ready", boot_s))

    def collect(self) -> Iterator[Metric]:
        yield from self._gauges


def _is_new(boot_s: float | None, environ: Mapping[str, str]) -> bool:
    """Whether the machine was booted for this service, as far as that can be told."""
    if boot_s is None or boot_s >= NEW_MACHINE_S:
        return False
    if METADATA_URI not in environ:
        return True
    pull_s = seconds_since_pull(environ)
    return pull_s is not None and boot_s - pull_s < PLACED_S


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(PREFIX + name, text, value=value)
