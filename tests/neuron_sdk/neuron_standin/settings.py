"""Which machine the stand-in plays, from the environment. No torch here: the command-line tools read it too.

STANDIN_NEURON_INSTANCE     ``inf1.6xlarge``, ``inf2.xlarge``, …; unset: a machine without Neuron devices, which can
                            compile and nothing else
STANDIN_NEURON_STATE        folder that stands for the driver: all processes of one machine share it. Cores belong to
                            who locks ``cores/N``; ``faults/N`` says what is wrong with core N (``faults``)
STANDIN_NEURON_ROW_MS       ``32:3.0,64:5.2,128:7.9``: how long a row of so many tokens takes a core, whatever is in it;
                            between them a straight line. Unset: as long as it takes to compute here
STANDIN_NEURON_LOAD_MS      how long one model takes to load on one core, 0
STANDIN_NEURON_START_MS     what the first call after a load, or after another model on the core, takes in addition, 0
STANDIN_NEURON_CORE_MB      memory of a core; default as the instance has it
STANDIN_NEURON_COMPILER     what is wrong with the compiler (``compiler``)
STANDIN_NEURON_TOOLS        ``old``: the tools of before 2025, without the fields that came later
STANDIN_NEURON_ABSENT       ``constants``: without a device don't fail but answer with constants, as old builds do
STANDIN_NEURON_SPLIT        ``first``: DataParallel cuts every input by the size of the first one's chunks, instead of
                            each by its own; which of them the real one does is not documented
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

PREFIX = "STANDIN_NEURON_"
_CORES_A_DEVICE = {"inf1": 4, "inf2": 2}
_CORE_GIB = {"inf1": 2, "inf2": 16}
_DEVICES = {
    "inf1.xlarge": 1,
    "inf1.2xlarge": 1,
    "inf1.6xlarge": 4,
    "inf1.24xlarge": 16,
    "inf2.xlarge": 1,
    "inf2.8xlarge": 1,
    "inf2.24xlarge": 6,
    "inf2.48xlarge": 12,
}


@dataclass(frozen=True)
class Settings:
    instance: str
    state: Path
    row_ms: dict[int, float]
    load_s: float
    start_s: float
    core_bytes: int

    @property
    def generation(self) -> str:
        return self.instance.partition(".")[0]

    @property
    def devices(self) -> int:
        return _DEVICES.get(self.instance, 0)

    @property
    def cores_a_device(self) -> int:
        return _CORES_A_DEVICE.get(self.generation, 0)

    @property
    def cores(self) -> int:
        return self.devices * self.cores_a_device

    def row_seconds(self, tokens: int) -> float:
        """Of a row of ``tokens``; 0 where nothing is set. Shorter than all that are given: the shortest one's time."""
        if not self.row_ms:
            return 0.0
        known = sorted(self.row_ms.items())
        below = max((pair for pair in known if pair[0] <= tokens), default=known[0])
        above = min((pair for pair in known if pair[0] >= tokens), default=None)
        if above is None:
            return below[1] * tokens / below[0] / 1e3
        if above[0] <= below[0]:
            return above[1] / 1e3
        share = (tokens - below[0]) / (above[0] - below[0])
        return (below[1] + share * (above[1] - below[1])) / 1e3


def setting(name: str, default: str = "") -> str:
    return os.environ.get(PREFIX + name) or default


def read_settings() -> Settings:
    instance = setting("INSTANCE", "none")
    if instance not in (*_DEVICES, "none"):
        raise ValueError(f"{PREFIX}INSTANCE {instance!r}: one of {', '.join(_DEVICES)}, none")
    rows = (pair.split(":") for pair in setting("ROW_MS").split(",") if pair)
    gib = _CORE_GIB.get(instance.partition(".")[0], 0)
    return Settings(
        instance=instance,
        state=Path(setting("STATE", f"{tempfile.gettempdir()}/standin-neuron-{os.getuid()}")),
        row_ms={int(tokens): float(ms) for tokens, ms in rows},
        load_s=float(setting("LOAD_MS", "0")) / 1e3,
        start_s=float(setting("START_MS", "0")) / 1e3,
        core_bytes=int(float(setting("CORE_MB", str(gib * 1024))) * 2**20),
    )
