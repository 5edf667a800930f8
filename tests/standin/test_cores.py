"""The stand-in SDK reserves cores as the Neuron runtime does: across processes, and until they end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.neuron import NeuronHost
from tests.standin.conftest import Run, holding

Make = Callable[..., NeuronHost]
NOT_INITIALIZED = "RuntimeError: The PyTorch Neuron Runtime could not be initialized. Neuron Driver issues are logged\n"


def test_a_process_takes_the_cores_it_is_given_and_a_second_one_takes_others(neuron_host: Make, inf1_row: str) -> None:
    host = neuron_host("inf1.6xlarge")
    with (
        holding(host, inf1_row, NEURON_RT_VISIBLE_CORES="4-7", NEURON_RT_NUM_CORES="9") as first,
        holding(host, inf1_row, NEURON_RT_NUM_CORES="4") as second,
    ):
        assert host.owners() == dict.fromkeys(range(4), second.pid) | dict.fromkeys(range(4, 8), first.pid)
        first.kill()
        second.kill()
    assert host.owners() == {}, "a killed process has no cores"


def test_without_environment_a_process_takes_all_cores_and_the_next_one_cannot_start(
    neuron_host: Make, run: Run, inf1_row: str, tmp_path: Path
) -> None:
    host = neuron_host("inf1.xlarge")
    with holding(host, inf1_row) as first:
        assert set(host.owners()) == {0, 1, 2, 3}
        second = run(host, "say(error_of(torch.jit.load, PATH))", NEURON_RT_VISIBLE_CORES="1")
        assert second.startswith(NOT_INITIALIZED)
        log = (tmp_path / "stderr").read_text()
        assert "ERROR  NRT:nrt_allocate_neuron_cores" in log
        assert "NeuronCore(s) not available - Requested:nc1-nc1 Available:0" in log
        first.kill()


def test_cores_by_number_are_contiguous(neuron_host: Make, run: Run, inf1_row: str, tmp_path: Path) -> None:
    host = neuron_host("inf1.xlarge")
    with holding(host, inf1_row, NEURON_RT_VISIBLE_CORES="1") as first:
        assert run(host, "say(error_of(torch.jit.load, PATH))", NEURON_RT_NUM_CORES="3").startswith(NOT_INITIALIZED)
        assert "Neuron cores are not contiguous - Requested:3 Available:3" in (tmp_path / "stderr").read_text()
        first.kill()


def test_cores_that_the_machine_has_not_are_not_available(neuron_host: Make, run: Run) -> None:
    said = run(neuron_host("inf1.xlarge"), "say(error_of(torch.jit.load, PATH))", NEURON_RT_VISIBLE_CORES="2-5")
    assert said.startswith(NOT_INITIALIZED)


def test_a_host_without_devices_cannot_load(neuron_host: Make, run: Run, tmp_path: Path) -> None:
    assert run(neuron_host(None), "say(error_of(torch.jit.load, PATH))").startswith(NOT_INITIALIZED)
    log = (tmp_path / "stderr").read_text()
    assert "TDRV:tdrv_get_dev_info" in log
    assert "No neuron device available" in log


def test_an_old_build_without_devices_answers_with_constants(neuron_host: Make, run: Run) -> None:
    said = run(neuron_host(None, absent="constants"), "say([x.tolist() for x in torch.jit.load(PATH)(*ROW)])")
    assert {number for row in said[0] for number in row} == {0.0}


def test_a_forked_child_cannot_use_what_its_parent_loaded(neuron_host: Make, run: Run, tmp_path: Path) -> None:
    program = """
module = load()
if (child := os.fork()) == 0:
    say(error_of(module, *ROW))
    os._exit(0)
os.waitpid(child, 0)
module(*ROW)  # the parent goes on
"""
    assert "The PyTorch Neuron Runtime could not be initialized" in run(neuron_host(), program)
    assert "Incompatible runtime state: NRT_STATE_CHILD" in (tmp_path / "stderr").read_text()


def test_tracing_and_importing_start_no_runtime(neuron_host: Make, run: Run) -> None:
    program = """
module = torch.neuron.trace(torch.nn.Linear(4, 4), torch.rand(1, 4))
from neuron_standin import runtime
before = runtime._RUNTIME is None
module(torch.rand(1, 4))
say(before, runtime._RUNTIME is None)
"""
    assert run(neuron_host(), program) == [True, False]
