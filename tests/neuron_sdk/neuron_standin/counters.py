"""What a core has done, in shared memory: its process counts, ``neuron-monitor`` reads."""

from __future__ import annotations

import mmap
import os
import struct
from pathlib import Path

FIELDS = (
    "completed",
    "completed_with_err",
    "completed_with_num_err",
    "timed_out",
    "incorrect_input",
    "failed_to_queue",
    "generic",
    "numerical",
    "transient",
    "model",
    "runtime",
    "hardware",
    "busy_ns",
    "memory_bytes",
    "models",
    "sram_ecc_uncorrected",
)
_SIZE = 8 * len(FIELDS)
# Execution status -> what it counts as, in the execution's summary and in that of errors.
_COUNTED = {
    1: ("completed_with_err", "generic"),
    2: ("incorrect_input", "model"),
    5: ("timed_out", "transient"),
    6: ("completed_with_err", "hardware"),
    7: ("failed_to_queue", "transient"),
    1002: ("incorrect_input", "model"),
    1003: ("completed_with_num_err", "numerical"),
    1004: ("completed_with_err", "hardware"),
    1005: ("failed_to_queue", "transient"),
    1006: ("incorrect_input", "model"),
}


class Counters:
    """Written by the one thread that has the core."""

    def __init__(self, state: Path, core: int) -> None:
        path = _path(state, core)
        path.parent.mkdir(parents=True, exist_ok=True)
        hardware = read_counters(state, core)["sram_ecc_uncorrected"]  # the chip's, whoever has the core
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.ftruncate(file, _SIZE)
        self._memory = mmap.mmap(file, _SIZE)
        os.close(file)
        self._memory[:] = bytes(_SIZE)
        self.add("sram_ecc_uncorrected", hardware)

    def add(self, field: str, value: int) -> None:
        at = 8 * FIELDS.index(field)
        struct.pack_into("=q", self._memory, at, struct.unpack_from("=q", self._memory, at)[0] + value)

    def put(self, field: str, value: int) -> None:
        struct.pack_into("=q", self._memory, 8 * FIELDS.index(field), value)

    def count_execution(self, nanoseconds: int) -> None:
        self.add("completed", 1)
        self.add("busy_ns", nanoseconds)

    def count_failure(self, status: int) -> None:
        for field in _COUNTED.get(status, ("completed_with_err", "runtime")):
            self.add(field, 1)
        if status == 6:
            self.add("sram_ecc_uncorrected", 1)


def read_counters(state: Path, core: int) -> dict[str, int]:
    """All of a core's counters; zeros before any process had it."""
    try:
        content = _path(state, core).read_bytes()
    except FileNotFoundError:
        content = b""
    return dict(zip(FIELDS, struct.unpack(f"={len(FIELDS)}q", content[:_SIZE].ljust(_SIZE, b"\0")), strict=True))


def _path(state: Path, core: int) -> Path:
    return state / "counters" / str(core)
