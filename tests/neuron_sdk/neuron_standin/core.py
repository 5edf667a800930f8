"""One NeuronCore of this process: one execution at a time, a bounded memory, and whatever is wrong with it."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

import torch

from neuron_standin import status
from neuron_standin.artefact import Program
from neuron_standin.counters import Counters
from neuron_standin.faults import current_fault
from neuron_standin.settings import Settings

# What prose and old documents say of Inf1 and the table of Inf2.
_EXEC_TIMEOUT_S = {"inf1": 2.0, "inf2": 30.0}


class Core:
    def __init__(self, number: int, index: int, settings: Settings) -> None:
        self.number = number  # on the machine
        self.index = index  # in this process
        self.models: set[bytes] = set()
        self._settings = settings
        self._used_bytes = 0
        self._turn = threading.Lock()
        self._last_model: bytes | None = None
        self._is_bad = False
        self._counters = Counters(settings.state, number)

    def load(self, key: bytes, program: Program) -> None:
        """Takes seconds on a chip. RuntimeError with status 4 when the memory is full, 2 for the other generation."""
        if program.header.generation != self._settings.generation:
            raise status.load_error(status.INVALID)
        if fault := current_fault(self._settings.state, self.number, loading=True):
            raise status.load_error(int(fault))
        if self._used_bytes + program.header.device_bytes > self._settings.core_bytes:
            raise status.load_error(status.RESOURCE)
        time.sleep(self._settings.load_s)
        self._used_bytes += program.header.device_bytes
        self.models.add(key)
        self._report_memory()

    def unload(self, key: bytes, program: Program) -> None:
        self.models.discard(key)
        self._used_bytes -= program.header.device_bytes
        self._report_memory()

    def execute(self, key: bytes, program: Program, inputs: list[torch.Tensor], share: float) -> list[torch.Tensor]:
        """``share``: of the row's time that falls to this core, less than 1 in a pipeline."""
        with self._turn:
            begin = time.perf_counter()
            slowness = 1.0
            fault = None if self._is_bad else current_fault(self._settings.state, self.number)
            if self._is_bad:
                fault = str(status.TIMEOUT)
            if fault == "hang":
                self._hang()
            elif fault and fault.startswith("slow:"):
                slowness = float(fault.removeprefix("slow:"))
            elif fault and fault != "garbage":
                self._fail(int(fault))
            seconds = self._settings.row_seconds(_tokens(program)) * share * slowness
            if self._last_model != key:
                seconds += self._settings.start_s
                self._last_model = key
            outputs = compute(program, inputs)
            if fault == "garbage":
                outputs = [torch.rand_like(output) for output in outputs]
            # The row takes as long as it takes on the chip, however long its numbers took here.
            if (left_s := begin + seconds - time.perf_counter()) > 0:
                time.sleep(left_s)
            self._counters.count_execution(round((time.perf_counter() - begin) * 1e9))
            return outputs

    def _fail(self, code: int) -> None:
        if code == status.TIMEOUT:
            self._is_bad = True  # until the process ends: only then is a core reset
            seconds = os.environ.get("NEURON_RT_EXEC_TIMEOUT")
            time.sleep(float(seconds) if seconds else _EXEC_TIMEOUT_S[self._settings.generation])
            status.log(
                "TDRV:exec_consume_infer_status_notifications",
                f"(FATAL-RT-UNDEFINED-STATE) timeout on Neuron Device {self.number // self._settings.cores_a_device} "
                f"NC {self.number % self._settings.cores_a_device}, waiting for execution completion notification",
            )
            status.log("NMGR:dlr_infer", "Inference completed with err: 5")
        self._counters.count_failure(code)
        raise status.execute_error(code)

    def _hang(self) -> None:
        while current_fault(self._settings.state, self.number) == "hang":
            time.sleep(0.01)

    def _report_memory(self) -> None:
        self._counters.put("memory_bytes", self._used_bytes)
        self._counters.put("models", len(self.models))


def compute(program: Program, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    with torch.no_grad():
        result: Any = program.function(*inputs)
    return [result] if isinstance(result, torch.Tensor) else list(result)


def _tokens(program: Program) -> int:
    """Of a row: the first input is [rows, tokens, …]; several rows take as long as one row of all their tokens."""
    rows, tokens = [*program.header.shapes[0], 1, 1][:2]
    return rows * tokens
