"""This process's Neuron runtime: started by the first load, holds the cores and what is loaded on them."""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
from collections.abc import Iterator
from typing import Protocol

import torch

from neuron_standin import status
from neuron_standin.artefact import Program
from neuron_standin.core import Core, compute
from neuron_standin.inputs import check_inputs, in_chunks
from neuron_standin.reservation import reserve
from neuron_standin.settings import Settings, read_settings, setting


class Loaded(Protocol):
    program: Program

    def __call__(self, inputs: list[torch.Tensor]) -> list[torch.Tensor]: ...

    def unload(self) -> None: ...


class Copies:
    """A loaded model: as many copies as fit on its cores, called in turn. Each copy has one core, or its pipeline's."""

    def __init__(self, key: bytes, program: Program, places: list[list[Core]]) -> None:
        self.program = program
        self._key = key
        self._places = places
        self._turns = itertools.cycle(places)
        try:
            for core in itertools.chain(*places):
                core.load(key, program)
        except RuntimeError:
            self.unload()
            raise

    def __call__(self, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        check_inputs(self.program.header, inputs)
        return in_chunks(self.program.header, inputs, self._execute)

    def _execute(self, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        place = next(self._turns)
        for core in place:
            outputs = core.execute(self._key, self.program, inputs, 1 / len(place))
        return outputs

    def unload(self) -> None:
        for core in itertools.chain(*self._places):
            if self._key in core.models:
                core.unload(self._key, self.program)


class Constants:
    """What old builds do on a host without devices: they say so once and answer, with the same for every input."""

    def __init__(self, program: Program) -> None:
        self.program = program
        status.log("neuron_op_v2.cpp:133", "Model was not sent to NeuronCore (function load)")

    def __call__(self, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        check_inputs(self.program.header, inputs)
        return [torch.zeros_like(output) for output in compute(self.program, inputs)]

    def unload(self) -> None:
        pass


class Runtime:
    def __init__(self, settings: Settings) -> None:
        self.pid = os.getpid()
        self.cores: list[Core] = []
        self._loaded: dict[bytes, Loaded] = {}
        self._lock = threading.Lock()
        self._is_absent = not settings.cores and setting("ABSENT") == "constants"
        if not self._is_absent:
            self._reservation = reserve(settings)
            self.cores = [Core(number, index, settings) for index, number in enumerate(self._reservation.cores)]

    def load(self, key: bytes, program: Program, start: int = -1, count: int = -1) -> Loaded:
        """On ``count`` cores from ``start``; -1: as many as the model needs, on the cores with the fewest models."""
        with self._lock:
            loaded = (
                Constants(program) if self._is_absent else Copies(key, program, self._places(program, start, count))
            )
            self._loaded[key] = loaded
            return loaded

    def _places(self, program: Program, start: int, count: int) -> list[list[Core]]:
        needed = program.header.pipeline_cores
        if start == -1:
            runs = range(len(self.cores) - max(needed, count) + 1)
            start = min(
                runs, key=lambda first: max(len(core.models) for core in self.cores[first:][:needed]), default=0
            )
        cores = self.cores[start:][: needed if count == -1 else count]
        if needed > len(cores):
            status.log("TDRV:db_vtpb_get_mla_and_tpb", f"Could not find VNC id {start + len(cores)}")
            raise status.load_error(status.NOT_ENOUGH_CORES)
        return [cores[first:][:needed] for first in range(0, len(cores) - needed + 1, needed)]

    def loaded(self, key: bytes) -> Loaded | None:
        return self._loaded.get(key)

    def unload(self, key: bytes) -> None:
        if loaded := self._loaded.pop(key, None):
            loaded.unload()


_RUNTIME: Runtime | None = None
_START = threading.Lock()


def runtime() -> Runtime:
    """The one of this process. RuntimeError when there are no devices, no free cores, or the process was forked."""
    global _RUNTIME
    with _START:
        if _RUNTIME is None:
            _RUNTIME = Runtime(read_settings())
    if os.getpid() != _RUNTIME.pid:
        raise status.not_initialized("NRT:nrt_init", "Incompatible runtime state: NRT_STATE_CHILD")
    return _RUNTIME


def loaded(key: bytes) -> Loaded | None:
    """Without starting anything."""
    return None if _RUNTIME is None else _RUNTIME.loaded(key)


def unload(key: bytes) -> None:
    """Of a module that was collected; a forked child has nothing to give back."""
    if _RUNTIME is not None and os.getpid() == _RUNTIME.pid:
        _RUNTIME.unload(key)


# Where the next load goes. As with the real one this is the process's, not the thread's: two threads that place models
# at the same time would get each other's cores.
_PLACEMENT: tuple[int, int, int] | None = None  # first core, number of cores, the thread that chose them


@contextlib.contextmanager
def placement(start: int, count: int) -> Iterator[None]:
    """Loads inside go to these cores. AssertionError when another thread is inside one as well."""
    global _PLACEMENT
    current_placement()
    check_cores(start, count)
    before = _PLACEMENT
    _PLACEMENT = (start, count, threading.get_ident())
    try:
        yield
    finally:
        current_placement()
        _PLACEMENT = before


def current_placement() -> tuple[int, int]:
    if _PLACEMENT is None:
        return -1, -1
    start, count, thread = _PLACEMENT
    assert thread == threading.get_ident(), "stand-in SDK: two threads place models at once, which isn't thread-safe"
    return start, count


def check_cores(start: int, count: int) -> None:
    visible = len(runtime().cores)
    if not -1 <= start < visible:
        raise ValueError(f"start_nc={start} must be -1 or one of the {visible} visible NeuronCores")
    if count != -1 and not 1 <= count <= visible - max(start, 0):
        raise ValueError(f"nc_count={count} must be -1 or from 1 to {visible - max(start, 0)}")
