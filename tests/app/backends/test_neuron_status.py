"""What PyTorch's text says of the Neuron runtime's status, and what follows from each."""

from __future__ import annotations

import pytest

from app.backends.neuron_model import failure_of
from app.backends.neuron_status import STATUSES, UNINITIALISED, Action, status_of
from app.errors import Remedy

PREFIX = "The following operation failed in the TorchScript interpreter.\nTraceback of TorchScript:\n"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Could not load the model status=4 message=Allocation Failure", 4),
        ("Could not load the model status=2 message=Invalid", 2),
        (PREFIX + "RuntimeError: Failed to execute the model status=5 message=Timeout Exceeded", 5),
        ('nrt_tensor_allocate status=4 message="Allocation Failure"', 4),
        ("Failed to load NN: /tmp/x.neff, err: 2", 2),
        ("Caught RuntimeError on neuroncore 3.\n… status=1004 message=Completed with errors", 1004),
        ("Execution was completed with other errors", 1004),
        (PREFIX + "Incorrect tensor shape at input tensor #0: received 1 64, expected 1 128.", 2),
        ("Inference completed with err: 5 … Failed to execute the model status=1 message=Failure", 1),
    ],
)
def test_it_is_read_from_every_wording_that_was_seen(text: str, code: int) -> None:
    status = status_of(RuntimeError(text))
    assert status is not None
    assert status.code == code


@pytest.mark.parametrize("text", ["shape '[2]' is invalid for input of size 3", "status quo", ""])
def test_an_error_of_anything_else_has_none(text: str) -> None:
    assert status_of(RuntimeError(text)) is None


def test_an_unknown_code_is_a_plain_failure_under_its_own_number() -> None:
    status = status_of(RuntimeError("status=4711 message=?"))
    assert status is not None
    assert (status.code, status.action) == (4711, Action.RESTART)


@pytest.mark.parametrize(
    ("codes", "action"),
    [
        ((1002, 1003, 1006), Action.REJECT),
        ((4, 7, 11, 1005), Action.RETRY),
        ((5, 101, 1004), Action.DROP_CORE),
        ((1, 3, 13, 14, 1204), Action.RESTART),
        ((6, 1200, 1201, 1202, 1203, 1205, 1206), Action.REPLACE_HOST),
        ((2, 9, 10), Action.REFUSE),
    ],
)
def test_each_code_has_its_action(codes: tuple[int, ...], action: Action) -> None:
    assert {code for code, status in STATUSES.items() if status.action is action} == set(codes)


@pytest.mark.parametrize(
    ("code", "remedy"),
    [(5, Remedy.RETIRE), (6, Remedy.RETIRE), (1004, Remedy.RETIRE), (1005, Remedy.BACK_OFF), (1, Remedy.RESTART)],
)
def test_what_it_makes_of_a_core(code: int, remedy: Remedy) -> None:
    failure = failure_of(RuntimeError(f"Failed to execute the model status={code} message=x"), "NeuronCore 6")
    assert failure is not None
    assert (failure.remedy, failure.fault) == (remedy, STATUSES[code].name)
    assert str(failure).startswith(f"NeuronCore 6: status {code} ({STATUSES[code].name}): ")


def test_broken_hardware_is_the_operators() -> None:
    assert "REPLACE THIS HOST" in str(failure_of(RuntimeError("status=6 message=x"), "NeuronCore 6"))


@pytest.mark.parametrize("text", ["status=1002 message=Bad Input", "status=1006 message=OOB", "something else"])
def test_a_query_that_is_to_blame_costs_no_core(text: str) -> None:
    assert failure_of(RuntimeError(text), "NeuronCore 6") is None


def test_a_runtime_that_never_started_is_no_status_but_known() -> None:
    text = "The PyTorch Neuron Runtime could not be initialized. Neuron Driver issues are logged\nto your system logs."
    assert status_of(RuntimeError(text)) is None
    assert UNINITIALISED.search(text)
    failure = failure_of(RuntimeError(text), "NeuronCore 6")
    assert failure is not None
    assert failure.remedy is Remedy.RESTART
