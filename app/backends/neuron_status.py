"""The Neuron runtime's status codes: what each says and what is to be done about it.

Names and causes are ``nrt_status.h``'s. PyTorch shows them as text in a ``RuntimeError`` only.
"""

from __future__ import annotations

import enum
import re
from typing import NamedTuple


class Action(enum.Enum):
    """What the service does about a status; the last two end in the operator's hands."""

    REJECT = "reject the request"
    RETRY = "run the row once more, elsewhere"
    DROP_CORE = "take the core out"
    RESTART = "restart the worker"
    REPLACE_HOST = "take the core out; the host must be replaced"
    REFUSE = "don't start: the artefact or the configuration is wrong"


class Status(NamedTuple):
    """A code with its name, its cause in words and what follows from it."""

    code: int
    name: str
    cause: str
    action: Action

    def __str__(self) -> str:
        return f"status {self.code} ({self.name}): {self.cause}"


_A = Action
STATUSES = {
    status.code: status
    for status in (
        Status(1, "NRT_FAILURE", "the runtime failed for no stated reason", _A.RESTART),
        Status(2, "NRT_INVALID", "the artefact isn't this runtime's, or an input has another name or size", _A.REFUSE),
        Status(3, "NRT_INVALID_HANDLE", "the runtime was called wrongly", _A.RESTART),
        Status(4, "NRT_RESOURCE", "no memory is left, on the device or on the host", _A.RETRY),
        Status(5, "NRT_TIMEOUT", "the core hangs, or the model is too slow for NEURON_RT_EXEC_TIMEOUT", _A.DROP_CORE),
        Status(6, "NRT_HW_ERROR", "the hardware is broken", _A.REPLACE_HOST),
        Status(7, "NRT_QUEUE_FULL", "too much is in flight on the core", _A.RETRY),
        Status(9, "NRT_LOAD_NOT_ENOUGH_NC", "the model needs more cores than it was given", _A.REFUSE),
        Status(10, "NRT_UNSUPPORTED_NEFF_VERSION", "the compiler is newer than the runtime", _A.REFUSE),
        Status(11, "NRT_FAIL_HOST_MEM_ALLOC", "the host has no memory left", _A.RETRY),
        Status(13, "NRT_UNINITIALIZED", "the runtime isn't initialised", _A.RESTART),
        Status(14, "NRT_CLOSED", "the runtime is closed", _A.RESTART),
        Status(101, "NRT_EXEC_UNIT_UNRECOVERABLE", "the core needs a reset", _A.DROP_CORE),
        Status(1002, "NRT_EXEC_BAD_INPUT", "the input is invalid", _A.REJECT),
        Status(1003, "NRT_EXEC_COMPLETED_WITH_NUM_ERR", "the result is no number", _A.REJECT),
        Status(1004, "NRT_EXEC_COMPLETED_WITH_ERR", "a logic or parity error on the core", _A.DROP_CORE),
        Status(1005, "NRT_EXEC_NC_BUSY", "another model or process has locked the core", _A.RETRY),
        Status(1006, "NRT_EXEC_OOB", "an index is out of bounds", _A.REJECT),
        Status(1200, "NRT_EXEC_HW_ERR_COLLECTIVES", "the hardware failed in a collective", _A.REPLACE_HOST),
        Status(1201, "NRT_EXEC_HW_ERR_HBM_UE", "the device's memory has an uncorrectable error", _A.REPLACE_HOST),
        Status(1202, "NRT_EXEC_HW_ERR_NC_UE", "the core's memory has an uncorrectable error", _A.REPLACE_HOST),
        Status(1203, "NRT_EXEC_HW_ERR_DMA_ABORT", "a DMA transfer was aborted", _A.REPLACE_HOST),
        Status(1204, "NRT_EXEC_SW_NQ_OVERFLOW", "the notification queue overflowed", _A.RESTART),
        Status(
            1205,
            "NRT_EXEC_HW_ERR_REPAIRABLE_HBM_UE",
            "the device's memory has an error that reloading the driver repairs (rmmod neuron; modprobe neuron)",
            _A.REPLACE_HOST,
        ),
        Status(1206, "NRT_EXEC_NETWORK_PROXY", "the network proxy failed", _A.REPLACE_HOST),
    )
}

# "Could not load the model status=4 message=Allocation Failure" and, in the runtime's own log, "… with err: 5".
_CODE = re.compile(r"\bstatus=(\d+)|\berr: (\d+)")
# Texts that come without a code.
_WORDS = (
    ("Execution was completed with other errors", 1004),
    ("Incorrect tensor shape", 2),
)
UNINITIALISED = re.compile(r"Neuron Runtime could not be initialized|runtime cannot be initialized", re.IGNORECASE)


def status_of(error: BaseException) -> Status | None:
    """The status that an error of PyTorch's tells of; None where it tells of none. An unknown code is a plain failure.

    Of several in one text, as where the runtime's log is quoted, the last is the one the call ended with.
    """
    text = str(error)
    codes = [int(match[1] or match[2]) for match in _CODE.finditer(text)]
    if codes:
        unknown = STATUSES[1]._replace(code=codes[-1], name="NRT_UNKNOWN", cause="a status that isn't documented")
        return STATUSES.get(codes[-1], unknown)
    return next((STATUSES[code] for words, code in _WORDS if words in text), None)
