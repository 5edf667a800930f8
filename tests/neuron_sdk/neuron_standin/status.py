"""The runtime's status codes, as PyTorch shows them: texts in a RuntimeError, and lines on stderr."""

from __future__ import annotations

import os
import threading
from datetime import datetime

RESOURCE, TIMEOUT, HW_ERROR, NOT_ENOUGH_CORES, INVALID = 4, 5, 6, 9, 2
BAD_INPUT, NUM_ERR, COMPLETED_WITH_ERR = 1002, 1003, 1004

# Texts that somebody has seen; of the others nobody has written down more than the name.
_MESSAGES = {
    1: "Failure",
    2: "Invalid",
    4: "Allocation Failure",
    5: "Timeout Exceeded",
    6: "Hardware Error",
    7: "Queue Full",
    9: "Not Enough NeuronCores",
    10: "Unsupported NEFF Version",
    1002: "Bad Input",
    1003: "Completed with numerical errors",
    1004: "Execution was completed with other errors",
    1005: "NeuronCore Busy",
    1006: "Out of Bounds",
}

NOT_INITIALIZED = (
    "The PyTorch Neuron Runtime could not be initialized. Neuron Driver issues are logged\n"
    "to your system logs. See the Neuron Runtime's troubleshooting guide for help on this\n"
    "topic: https://awsdocs-neuron.readthedocs-hosted.com/en/latest/"
)


def load_error(status: int) -> RuntimeError:
    return RuntimeError(f"Could not load the model status={status} message={_MESSAGES.get(status, 'Unknown')}")


def execute_error(status: int) -> RuntimeError:
    return RuntimeError(f"Failed to execute the model status={status} message={_MESSAGES.get(status, 'Unknown')}")


def not_initialized(component: str, message: str) -> RuntimeError:
    """The one text for every failed start; why, is only in the log line."""
    log(component, message)
    return RuntimeError(NOT_INITIALIZED)


def log(component: str, message: str) -> None:
    """A line of the runtime's log, which C++ writes to the descriptor, past ``sys.stderr``."""
    time = datetime.now().strftime("%Y-%b-%d %H:%M:%S.%f")[:-2]
    line = f"{time} {os.getpid():>5}:{threading.get_native_id():<5} ERROR  {component:<46} {message}\n"
    os.write(2, line.encode())
