"""A compiled module takes what it was compiled for and nothing else."""

from __future__ import annotations

from collections.abc import Callable

from tests.neuron import NeuronHost
from tests.standin.conftest import Run

Make = Callable[..., NeuronHost]


def test_it_computes_what_was_traced_and_returns_a_tuple_of_float32(neuron_host: Make, run: Run) -> None:
    program = """
(logits,) = load()(*ROW)
say(str(logits.dtype), list(logits.shape), (logits - ROW[2] @ ROW[0][0, :, :9]).abs().max().item())
"""
    dtype, shape, difference = run(neuron_host(), program)
    assert (dtype, shape) == ("torch.float32", [5, 9])
    assert 0 < difference < 0.05, "bf16 is near float32 and not the same"


def test_shapes_dtypes_and_keywords_are_refused(neuron_host: Make, run: Run) -> None:
    program = """
module = load()
hidden, mask, pool = ROW
say(
    error_of(module, torch.rand(1, 8, 16), mask, pool),
    error_of(module, torch.rand(2, 16, 16), mask, pool),
    error_of(module, hidden.double(), mask, pool),
    error_of(module, mask, hidden, pool),
    error_of(module, hidden=hidden, mask=mask, pool=pool),
    error_of(module, hidden, mask),
)
"""
    short, two, double, swapped, keyword, few = run(neuron_host(), program)
    assert short.startswith("RuntimeError: The following operation failed in the TorchScript interpreter.")
    assert "Incorrect tensor shape at input tensor #0: received 1 8 16, expected 1 16 16." in short
    assert "Incorrect tensor shape at input tensor #0: received 2 16 16" in two
    assert "Incorrect tensor data type at input tensor #0: received torch.float64" in double
    assert "Incorrect tensor shape at input tensor #0: received 1 1 16 16" in swapped
    assert keyword.startswith("RuntimeError: forward() ")
    assert few.startswith("RuntimeError: forward() is missing value")


def test_torch_without_the_sdk_does_not_know_the_graph(neuron_host: Make, inf1_row: str) -> None:
    for sdk in ("sys", "torch_neuronx"):
        tried = neuron_host().python(f"import sys, torch, {sdk}; torch.jit.load(sys.argv[1])", inf1_row)
        assert "Unknown builtin op: neuron::forward_v2_1" in tried.stderr


def test_a_module_that_nobody_has_any_more_leaves_its_core(neuron_host: Make, run: Run) -> None:
    host = neuron_host()
    program = """
from neuron_standin.runtime import runtime
counts = lambda: [len(core.models) for core in runtime().cores]
first, second = load(0), load(2)
loaded = counts()
del first
say(loaded, counts())
"""
    assert run(host, program) == [[1, 0, 1, 0], [0, 0, 1, 0]]


def test_models_share_a_cores_memory(neuron_host: Make, run: Run) -> None:
    """A tiny model takes 8 MiB: its code and its room for activations."""
    program = """
kept = [load(0), load(0)]
full = error_of(load, 0)
kept.append(load(1))
kept.pop(0)
say(full, error_of(load, 0))
"""
    full, again = run(neuron_host(core_mb=20), program)
    assert full == "RuntimeError: Could not load the model status=4 message=Allocation Failure"
    assert again is None, "what was unloaded makes room"
