"""What can go wrong with a core, while its process runs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.neuron import NeuronHost
from tests.standin.conftest import Run

Make = Callable[..., NeuronHost]
# Faults are set by the program itself here, through the file that any process can write.
BREAK = """
from pathlib import Path
from neuron_standin.faults import set_fault
from neuron_standin.settings import read_settings
STATE = read_settings().state
def break_core(core, what):
    set_fault(STATE, core, what)
"""


@pytest.mark.parametrize("status", [2, 6, 1002, 1003, 1004, 1005, 1006])
def test_an_execution_ends_with_a_status(neuron_host: Make, run: Run, status: int) -> None:
    host = neuron_host()
    host.break_core(0, str(status))
    said, other = run(host, "say(error_of(load(0), *ROW), error_of(load(1), *ROW))")
    assert said.startswith("RuntimeError: The following operation failed in the TorchScript interpreter.")
    assert f"Failed to execute the model status={status} message=" in said
    assert other is None, "the other cores are well"


def test_a_counted_fault_passes_and_a_mended_core_is_well(neuron_host: Make, run: Run) -> None:
    program = """
module = load(0)
break_core(0, "1004*2")
said = [error_of(module, *ROW) is None for _ in range(3)]
break_core(0, "1003")
said.append(error_of(module, *ROW) is None)
break_core(0, None)
said.append(error_of(module, *ROW) is None)
say(said)
"""
    assert run(neuron_host(), BREAK + program) == [False, False, True, False, True]


def test_a_core_that_timed_out_is_bad_until_its_process_ends(neuron_host: Make, run: Run) -> None:
    host = neuron_host()
    program = """
module = load(0)
begin = time.monotonic()
break_core(0, "5*1")
first = error_of(module, *ROW)
say(first, error_of(module, *ROW), time.monotonic() - begin)
"""
    first, second, seconds = run(host, BREAK + program, NEURON_RT_EXEC_TIMEOUT="0.1")
    assert "Failed to execute the model status=5 message=Timeout Exceeded" in first
    assert "status=5" in second
    assert seconds > 0.2, "each waits for the runtime's time-out"
    assert run(host, "say(error_of(load(0), *ROW))") is None, "a new process resets the core"


def test_a_load_fails(neuron_host: Make, run: Run) -> None:
    host = neuron_host()
    host.break_core(0, "load:4*1")
    said = run(host, "say(error_of(load, 0), error_of(load, 0))")
    assert said == ["RuntimeError: Could not load the model status=4 message=Allocation Failure", None]


def test_garbage_has_the_right_shape_and_the_wrong_numbers(neuron_host: Make, run: Run) -> None:
    program = """
module = load(0)
right = module(*ROW)[0]
break_core(0, "garbage")
wrong = module(*ROW)[0]
say(right.shape == wrong.shape, bool(torch.isfinite(wrong).all()), torch.allclose(right, wrong, atol=0.02))
"""
    assert run(neuron_host(), BREAK + program) == [True, True, False]


def test_a_core_hangs_until_the_fault_is_gone(neuron_host: Make, run: Run) -> None:
    program = """
module = load(0)
break_core(0, "hang")
thread = threading.Thread(target=module, args=ROW)
thread.start()
thread.join(0.3)
hung = thread.is_alive()
break_core(0, None)
thread.join(30)
say(hung, thread.is_alive())
"""
    assert run(neuron_host(), BREAK + program) == [True, False]


def test_an_artefact_of_the_other_generation_is_invalid(neuron_host: Make, run: Run) -> None:
    assert run(neuron_host("inf2.xlarge"), "say(error_of(load))") == (
        "RuntimeError: Could not load the model status=2 message=Invalid"
    )
