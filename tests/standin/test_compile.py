"""What ``trace`` makes of a model, and what it does when the compiler does not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.neuron import PLACEHOLDER, NeuronHost
from tests.standin.conftest import Run

Make = Callable[..., NeuronHost]
MODEL = """
import subprocess
torch.manual_seed(0)
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.dense, self.norm = torch.nn.Linear(16, 16), torch.nn.LayerNorm(16)
    def forward(self, hidden, mask, pool):
        hidden = self.norm(torch.nn.functional.gelu(self.dense(hidden)))
        attention = torch.softmax(hidden @ hidden.transpose(1, 2) + mask[0], -1)
        return (pool @ (attention @ hidden)[0],)
model = Model().eval()
def trace(*compiler_args, **options):
    return torch.neuron.trace(model, ROW, compiler_args=list(compiler_args), **options)
def difference(module):
    with torch.no_grad():
        return (module(*ROW)[0] - model(*ROW)[0]).abs().max().item()
"""


# How far a compiled sum and a compiled product are from float32, as a share of the numbers.
ROUNDING = """
a, b = torch.rand(1, 64, 64) + 1, torch.rand(1, 64, 64) + 1
def rounding(trace, *compiler_args):
    shares = []
    for op in (torch.add, torch.matmul):
        exact = op(a, b)
        shares.append(((trace(op, (a, b), compiler_args=list(compiler_args))(a, b) - exact).abs() / exact).max().item())
    return shares
"""
FLOAT32, FP16, BF16 = (2.0**-bits for bits in (22, 11, 8))  # half a step of a mantissa, and a little in float32


def test_inf1_rounds_everything_by_default_and_only_products_when_told(neuron_host: Make, run: Run) -> None:
    program = """
say(rounding(torch.neuron.trace), rounding(torch.neuron.trace, "--fast-math", "fp32-cast-matmult", "no-fast-relayout"),
    rounding(torch.neuron.trace, "--fast-math", "all", "--fp32-cast", "matmult-fp16"))
"""
    everything, products, halves = run(neuron_host(), ROUNDING + program)
    assert all(FP16 < share < 2 * BF16 for share in everything)
    assert products[0] < FLOAT32
    assert FLOAT32 < products[1] < BF16
    assert FLOAT32 < halves[1] < products[1] / 2, "an explicit --fp32-cast wins"


def test_inf2_rounds_nothing_unless_told(neuron_host: Make, run: Run) -> None:
    program = """
import torch_neuronx
say(*(rounding(torch_neuronx.trace, *arguments) for arguments in (
    [], ["--auto-cast", "matmult", "--auto-cast-type", "tf32"], ["--auto-cast=matmult"], ["--auto-cast=all"])))
"""
    nothing, tf32, bf16, everything = run(neuron_host("inf2.xlarge"), ROUNDING + program)
    assert max(nothing) < FLOAT32
    assert max(tf32[0], bf16[0]) < FLOAT32 < min(tf32[1], bf16[1])
    assert tf32[1] < bf16[1]
    assert min(everything) > FP16


def test_inf2_has_a_graph_of_its_own(neuron_host: Make, run: Run) -> None:
    program = "import torch_neuronx; say(str(torch_neuronx.trace(model, ROW).graph))"
    assert "neuron::forward_1" in run(neuron_host("inf2.xlarge"), MODEL + program)


def test_a_refused_graph_becomes_a_cpu_trace_unless_fallback_is_off(neuron_host: Make, run: Run) -> None:
    host = neuron_host(compiler="fail")
    program = """
module = trace()
say("neuron::forward" in str(module.graph), difference(module), error_of(trace, fallback=False))
"""
    is_compiled, difference, error = run(host, MODEL + program)
    assert not is_compiled
    assert difference < 1e-6
    assert error.startswith("RuntimeError: neuron-cc failed")


def test_an_operator_that_the_compiler_lacks(neuron_host: Make, run: Run) -> None:
    program = """
def attend(hidden, mask, pool):
    return torch.nn.functional.embedding(hidden[0, :, 0].long(), pool)
trace = lambda **options: torch.neuron.trace(attend, ROW, **options)
say("neuron::forward" in str(trace().graph), error_of(trace, fallback=False))
"""
    is_compiled, error = run(neuron_host(), program)
    assert not is_compiled
    assert error.startswith("AttributeError: neuron-cc failed: unsupported operators: aten::embedding")


@pytest.mark.parametrize(
    ("compiler", "options", "expected"),
    [
        ("killed", "fallback=False", "RuntimeError: neuron-cc failed: Compile command returned: -9"),
        ("slow:60", "compiler_timeout=0.1", "TimeoutExpired: "),
        ("fail@64", "fallback=False", None),
    ],
)
def test_a_compiler_that_fails(neuron_host: Make, run: Run, compiler: str, options: str, expected: str | None) -> None:
    said = run(neuron_host(compiler=compiler), f"{MODEL}say(error_of(trace, {options}))")
    assert said is None if expected is None else said.startswith(expected)


def test_unknown_flags_are_refused(neuron_host: Make, run: Run) -> None:
    program = 'say(error_of(trace, "-O2", fallback=False), error_of(trace, "--fast-math", "most", fallback=False))'
    unknown, choice = run(neuron_host(), MODEL + program)
    assert "unrecognized arguments: -O2" in unknown
    assert "argument --fast-math: invalid choice: 'most'" in choice


def test_a_fresh_trace_and_what_is_saved_of_it_give_the_same(neuron_host: Make, run: Run) -> None:
    program = """
module = trace()
torch.jit.save(module, PATH + ".again")
say(torch.equal(module(*ROW)[0], torch.jit.load(PATH + ".again")(*ROW)[0]))
"""
    assert run(neuron_host(), MODEL + program) is True


def test_a_dynamic_batch_is_cut_into_chunks_of_the_compiled_size(neuron_host: Make, run: Run) -> None:
    host = neuron_host()
    program = """
linear = torch.nn.Linear(4, 4)
module = torch.neuron.trace(linear, torch.rand(2, 4), dynamic_batch_size=True)
five = torch.rand(5, 4)
say(list(module(five).shape), torch.allclose(module(five), linear(five), atol=0.05))
"""
    assert run(host, program) == [[5, 4], True]
    assert host.counters(0)["completed"] == 6


def test_pypis_torch_neuron_is_an_empty_module(neuron_host: Make) -> None:
    program = """
import torch_neuron
from importlib.metadata import version
print(version("torch-neuron"), hasattr(torch_neuron, "trace"))
"""
    assert neuron_host().python(program, PYTHONPATH=str(PLACEHOLDER)).stdout == "1.0 False\n"
