"""The stand-in SDK reserves cores as the Neuron runtime does: across processes, and until they end."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.neuron import NeuronHost, make_neuron_bundle

Make = Callable[..., NeuronHost]
LOAD = "import torch, torch_neuron, sys; m = torch.jit.load(sys.argv[1]); print('loaded', flush=True)"


@pytest.fixture(scope="session")
def row(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A compiled row of 16 tokens."""
    bundle = make_neuron_bundle(tmp_path_factory.mktemp("neuron") / "tiny")
    return str(bundle / "inf1" / "row_16.pt")


def holding(host: NeuronHost, row: str, **env: str) -> subprocess.Popen[str]:
    """A process that has loaded the row and waits for its standard input to end."""
    process = subprocess.Popen(
        [sys.executable, "-c", f"{LOAD}; sys.stdin.read()", row],
        env=host.env | env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    assert process.stdout.readline() == "loaded\n"
    return process


def test_a_process_takes_the_cores_it_is_given_and_a_second_one_takes_others(neuron_host: Make, row: str) -> None:
    host = neuron_host("inf1.6xlarge")
    with holding(host, row, NEURON_RT_VISIBLE_CORES="4-7") as first, holding(host, row, NEURON_RT_NUM_CORES="4") as two:
        assert host.owners() == dict.fromkeys(range(4), two.pid) | dict.fromkeys(range(4, 8), first.pid)
        first.kill()
        two.kill()


def test_without_environment_a_process_takes_all_cores_and_the_next_one_cannot_start(
    neuron_host: Make, row: str
) -> None:
    host = neuron_host("inf1.xlarge")
    with holding(host, row) as first:
        assert set(host.owners()) == {0, 1, 2, 3}
        second = host.python(LOAD, row, NEURON_RT_VISIBLE_CORES="1")
        assert second.returncode == 1
        assert "RuntimeError: The PyTorch Neuron Runtime could not be initialized. Neuron Driver" in second.stderr
        assert "NRT:nrt_allocate_neuron_cores" in second.stderr
        assert "NeuronCore(s) not available - Requested:nc1-nc1 Available:0" in second.stderr
        first.kill()


def test_cores_of_a_killed_process_are_free(neuron_host: Make, row: str) -> None:
    host = neuron_host("inf1.xlarge")
    with holding(host, row) as first:
        first.kill()
    assert host.owners() == {}
    assert host.python(LOAD, row).returncode == 0


def test_a_host_without_devices_cannot_load(neuron_host: Make, row: str) -> None:
    tried = neuron_host(None).python(LOAD, row)
    assert "RuntimeError: The PyTorch Neuron Runtime could not be initialized" in tried.stderr
    assert "TDRV:tdrv_get_dev_info" in tried.stderr
    assert "No neuron device available" in tried.stderr


def test_without_the_sdk_torch_does_not_know_the_graph(neuron_host: Make, row: str) -> None:
    tried = neuron_host().python("import torch, sys; torch.jit.load(sys.argv[1])", row)
    assert "Unknown builtin op: neuron::forward_v2_1" in tried.stderr
    assert Path(row).is_file()
