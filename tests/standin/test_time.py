"""A row takes a core as long as it is said to, and other cores run meanwhile."""

from __future__ import annotations

from collections.abc import Callable

from tests.neuron import NeuronHost
from tests.standin.conftest import Run

Make = Callable[..., NeuronHost]
# A clock that only sleeping moves.
CLOCK = """
from neuron_standin import core as standin
class Clock:
    now = 0.0
    def perf_counter(self): return self.now
    def sleep(self, seconds): self.now += seconds
clock = standin.time = Clock()
def ms_of(call, *arguments):
    begin = clock.now
    call(*arguments)
    return round((clock.now - begin) * 1e3, 3)
"""
# Executions that wait for each other inside of what the core computes, or don't find each other there.
MEETING = """
from neuron_standin import core as standin
real = standin.compute
def meet(modules, timeout_s):
    barrier, met = threading.Barrier(len(modules)), []
    def compute(program, inputs):
        try:
            barrier.wait(timeout_s)
            met.append(True)
        except threading.BrokenBarrierError:
            met.append(False)
        return real(program, inputs)
    standin.compute = compute
    threads = [threading.Thread(target=module, args=ROW) for module in modules]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    return met
"""


def test_cores_run_side_by_side_and_executions_on_one_core_take_turns(neuron_host: Make, run: Run) -> None:
    program = """
one, four, two_copies = load(0), [load(core) for core in range(4)], load(0, 2)
say(meet(four, 60), meet([two_copies, two_copies], 60), meet([one, one], 0.2), meet([four[0], one], 0.2))
"""
    together, copies, same_module, same_core = run(neuron_host(), MEETING + program)
    assert together == [True] * 4
    assert copies == [True] * 2
    assert same_module == same_core == [False] * 2


def test_a_row_takes_as_long_as_it_is_said_to(neuron_host: Make, run: Run) -> None:
    host = neuron_host(row_ms="16:7.9")
    program = "module = load(0); say([ms_of(module, *ROW) for _ in range(3)])"
    assert run(host, CLOCK + program) == [7.9] * 3
    assert host.counters(0)["busy_ns"] == 3 * 7_900_000


def test_a_row_between_two_that_are_given_takes_between_as_long(neuron_host: Make, run: Run) -> None:
    program = """
from neuron_standin.settings import read_settings
say([round(read_settings().row_seconds(tokens) * 1e3, 3) for tokens in (8, 32, 48, 64, 128)])
"""
    assert run(neuron_host(row_ms="32:3,64:5"), program) == [3.0, 3.0, 4.0, 5.0, 10.0]


def test_the_first_call_and_a_change_of_model_take_longer(neuron_host: Make, run: Run) -> None:
    program = "one, other = load(0), load(0); say([ms_of(module, *ROW) for module in (one, one, other, one)])"
    assert run(neuron_host(start_ms=200, row_ms="16:5"), CLOCK + program) == [205, 5, 205, 205]


def test_a_load_takes_its_time_and_a_slow_core_takes_longer(neuron_host: Make, run: Run) -> None:
    host = neuron_host(load_ms=300, row_ms="16:50")
    host.break_core(1, "slow:10")
    program = "say(ms_of(load, 0), ms_of(load(0), *ROW), ms_of(load(1), *ROW))"
    assert run(host, CLOCK + program) == [300, 50, 500]


def test_a_pipelines_cores_share_the_time(neuron_host: Make, run: Run) -> None:
    host = neuron_host(row_ms="16:40")
    program = """
linear, example = torch.nn.Linear(4, 4), torch.rand(1, 16, 4)
module = torch.neuron.trace(linear, example, compiler_args=["--neuroncore-pipeline-cores", "4"])
say(ms_of(module, example))
"""
    assert run(host, CLOCK + program) == 40
    assert [host.counters(core)["busy_ns"] for core in range(4)] == [10_000_000] * 4
