"""Where ``torch.jit.load`` puts a model."""

from __future__ import annotations

from collections.abc import Callable

from tests.neuron import NeuronHost
from tests.standin.conftest import Run

Make = Callable[..., NeuronHost]
COUNTS = """
from neuron_standin.runtime import runtime
counts = lambda: [len(core.models) for core in runtime().cores]
"""


def test_a_load_goes_to_the_core_of_the_context_or_to_the_one_with_the_fewest_models(
    neuron_host: Make, run: Run
) -> None:
    program = """
kept = [load(1)]
say_after = [counts()]
kept += [torch.jit.load(PATH) for _ in range(4)]
say(*say_after, counts())
"""
    assert run(neuron_host(), COUNTS + program) == [[0, 1, 0, 0], [2, 1, 1, 1]]


def test_cores_are_counted_within_what_the_process_sees(neuron_host: Make, run: Run) -> None:
    host = neuron_host("inf1.6xlarge")
    run(host, "module = load(1); module(*ROW); say(0)", NEURON_RT_VISIBLE_CORES="8-11")
    assert [host.counters(core)["completed"] for core in range(8, 12)] == [0, 1, 0, 0]


def test_copies_on_several_cores_are_called_in_turn(neuron_host: Make, run: Run) -> None:
    host = neuron_host()
    run(host, "module = load(1, 2)\nfor _ in range(6): module(*ROW)\nsay(0)")
    assert [host.counters(core)["completed"] for core in range(4)] == [0, 3, 3, 0]
    run(host, "with multicore_context(): module = torch.jit.load(PATH)\nfor _ in range(4): module(*ROW)\nsay(0)")
    assert [host.counters(core)["completed"] for core in range(4)] == [1, 1, 1, 1]


def test_a_loaded_module_can_move(neuron_host: Make, run: Run) -> None:
    program = "module = load(0); torch_neuron.experimental.set_neuron_cores(module, 3, 1); module(*ROW); say(counts())"
    assert run(neuron_host(), COUNTS + program) == [0, 0, 0, 1]


def test_cores_that_the_process_has_not_are_a_value_error(neuron_host: Make, run: Run) -> None:
    program = "say(error_of(load, 4, 1), error_of(load, 0, 5), error_of(load, 2, 3), error_of(load, 0, 0))"
    assert all(said.startswith("ValueError: ") for said in run(neuron_host(), program))


def test_two_threads_that_place_at_once_fail_loudly(neuron_host: Make, run: Run) -> None:
    program = """
said = []
def other():
    said.append(error_of(load, 1))
    said.append(error_of(torch.jit.load, PATH))
with neuron_cores_context(0, 1):
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
say(said)
"""
    for said in run(neuron_host(), program):
        assert said.startswith("AssertionError: stand-in SDK: two threads place models at once")


def test_a_pipeline_needs_as_many_cores_as_it_was_compiled_for(neuron_host: Make, run: Run) -> None:
    program = """
module = torch.neuron.trace(torch.nn.Linear(4, 4), torch.rand(1, 4), compiler_args=["--neuroncore-pipeline-cores", "4"])
say(error_of(module, torch.rand(1, 4)))
"""
    assert "status=9" in run(neuron_host(), program, NEURON_RT_NUM_CORES="2")
    assert run(neuron_host(), program) is None
