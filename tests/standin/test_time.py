"""A row takes a core as long as it is said to, and the interpreter is free meanwhile."""

from __future__ import annotations

from collections.abc import Callable

from tests.neuron import NeuronHost
from tests.standin.conftest import Run

Make = Callable[..., NeuronHost]
TIMED = """
def seconds_of(*modules):
    threads = [threading.Thread(target=module, args=ROW) for module in modules]
    begin = time.monotonic()
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    return time.monotonic() - begin
"""


def test_rows_on_one_core_take_turns_and_on_different_cores_run_side_by_side(neuron_host: Make, run: Run) -> None:
    host = neuron_host(row_ms="16:300")
    program = """
one, four = load(0), [load(core) for core in range(4)]
say(seconds_of(one, one, one, one), seconds_of(*four))
"""
    turns, together = run(host, TIMED + program)
    assert turns >= 1.2
    assert together < 0.9
    assert host.counters(1)["busy_ns"] >= 0.3e9


def test_a_row_between_two_that_are_given_takes_between_as_long(neuron_host: Make, run: Run) -> None:
    program = """
from neuron_standin.settings import read_settings
say([round(read_settings().row_seconds(tokens) * 1e3, 3) for tokens in (8, 32, 48, 64, 128)])
"""
    assert run(neuron_host(row_ms="32:3,64:5"), program) == [3.0, 3.0, 4.0, 5.0, 10.0]


def test_the_first_call_and_a_change_of_model_take_longer(neuron_host: Make, run: Run) -> None:
    program = """
one, other = load(0), load(0)
say([seconds_of(module) >= 0.2 for module in (one, one, other, one)])
"""
    assert run(neuron_host(start_ms=200), TIMED + program) == [True, False, True, True]


def test_a_load_takes_its_time_and_a_slow_core_takes_longer(neuron_host: Make, run: Run) -> None:
    host = neuron_host(load_ms=200, row_ms="16:50")
    host.break_core(1, "slow:10")
    program = """
begin = time.monotonic()
well, slow = load(0), load(1)
say(time.monotonic() - begin, seconds_of(slow))
"""
    loads, slow = run(host, TIMED + program)
    assert loads >= 0.4
    assert slow >= 0.5
