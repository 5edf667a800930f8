"""The status board: a file in shared memory with a line for each worker, which the supervisor reads.

It tells the whole service's health without a question to a worker's event loop, however busy that is.
"""

from __future__ import annotations

import enum
import mmap
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

_LINE = struct.Struct("=qqqqdqQ")

NOT_ACCEPTING = -1
NAMED_REPLICAS = 64  # of a worker, the bits of ``Line.out``


class WorkerState(enum.IntEnum):
    ABSENT = 0  # not started, or ended
    LOADING = 1
    SERVING = 2
    DRAINING = 3


class Line(NamedTuple):
    """``heartbeat`` is the monotonic time, in seconds, at which the worker's event loop last turned.

    ``connections`` are those that it serves, ``NOT_ACCEPTING`` if it takes no further one. ``out`` has a bit for each
    of the first ``NAMED_REPLICAS`` replicas that takes no rows; one number, so that nobody reads it half written.
    """

    pid: int
    state: WorkerState
    replicas: int
    ready: int
    heartbeat: float
    connections: int = NOT_ACCEPTING
    out: int = 0

    def replicas_out(self) -> set[int]:
        return {replica for replica in range(NAMED_REPLICAS) if self.out >> replica & 1}


def bits_of(replicas: Iterable[int]) -> int:
    """``Line.out`` of these."""
    return sum(1 << replica for replica in replicas if replica < NAMED_REPLICAS)


EMPTY = Line(0, WorkerState.ABSENT, 0, 0, 0.0)


class StatusBoard:
    """Each worker writes its own line only, so there is nothing to lock."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 0)

    @classmethod
    def create(cls, path: Path, workers: int) -> StatusBoard:
        path.write_bytes(_LINE.pack(*EMPTY) * workers)
        return cls(path)

    def write(self, worker: int, line: Line) -> None:
        _LINE.pack_into(self._memory, worker * _LINE.size, *line)

    def read(self) -> list[Line]:
        return [Line(pid, WorkerState(state), *rest) for pid, state, *rest in _LINE.iter_unpack(self._memory)]

    def close(self) -> None:
        self._memory.close()
