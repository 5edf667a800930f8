"""DataParallel: one module over all cores of the process."""

from __future__ import annotations

from collections.abc import Callable

from tests.neuron import NeuronHost
from tests.standin.conftest import Run

Make = Callable[..., NeuronHost]
MODEL = """
import warnings
warnings.simplefilter("ignore")
parallel = torch.neuron.DataParallel(load())
def rows(n): return torch.rand(n, 16, 16), torch.zeros(n, 1, 16, 16), torch.rand(5 * n, 16)
"""


def test_as_many_rows_as_cores_run_on_a_core_each(neuron_host: Make, run: Run) -> None:
    host = neuron_host()
    program = """
hidden, mask, pool = rows(4)
(logits,) = parallel(hidden, mask, pool)
expected = torch.cat([pool[5 * row :][:5] @ hidden[row, :, :9] for row in range(4)])
say(torch.allclose(logits, expected, atol=0.05), parallel.num_workers)
"""
    assert run(host, MODEL + program) == [True, 8]
    assert [host.counters(core)["completed"] for core in range(4)] == [1, 1, 1, 1]


def test_a_single_row_always_runs_on_the_first_core(neuron_host: Make, run: Run) -> None:
    host = neuron_host()
    assert "Incorrect tensor shape" in run(host, MODEL + "say(error_of(parallel, *rows(8)))"), "not a row a core"
    program = """
parallel = torch.neuron.DataParallel(load(), device_ids=["nc:2", 3])
parallel.split_size = 5
for _ in range(3): parallel(*ROW)
say(0)
"""
    run(host, MODEL + program)
    assert [host.counters(core)["completed"] for core in range(4)] == [0, 0, 3, 0]


def test_an_error_names_its_core(neuron_host: Make, run: Run) -> None:
    host = neuron_host()
    host.break_core(3, "1004")
    said = run(host, MODEL + "say(error_of(parallel, *rows(4)))")
    assert said.startswith("RuntimeError: Caught RuntimeError on neuroncore 3.\nOriginal Traceback")
    assert "status=1004" in said


def test_batches_are_dynamic_where_all_inputs_have_one_size(neuron_host: Make, run: Run) -> None:
    program = """
import warnings
linear = torch.nn.Linear(4, 4)
def warned(model):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        return torch.neuron.DataParallel(model), [str(w.message) for w in caught if "dynamic" in str(w.message)]
parallel, silent = warned(torch.neuron.trace(linear, torch.rand(1, 4)))
ten = torch.rand(10, 4)
say(torch.allclose(parallel(ten), linear(ten), atol=0.05), silent, warned(load())[1])
"""
    is_right, silent, warning = run(neuron_host(), program)
    assert is_right
    assert silent == []
    assert warning == ["DataParallel: dynamic batching is disabled for this model"]
