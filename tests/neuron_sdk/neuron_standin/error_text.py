"""The runtime's error texts, in torch 1.13 too.

There the TorchScript interpreter drops the text of an error that an op raised in Python. The real ops are C++, and
theirs stays, so a module of the stand-in puts it back.
"""

from __future__ import annotations

import functools
import threading
from typing import Any

import torch

_RAISED = threading.local()


def remember(error: Exception) -> None:
    _RAISED.text = str(error)


def keep_error_text(module: torch.nn.Module) -> None:
    # Its C++ side, so that the module doesn't hold itself and unloads as soon as nobody has it any more.
    forward = module._c._get_method("forward")
    module.__dict__["forward"] = wrapped = functools.partial(_call, forward)
    wrapped.inlined_graph = forward.inlined_graph  # type: ignore[attr-defined]  # where a module has its own from


def _call(forward: Any, *inputs: Any, **keywords: Any) -> Any:
    _RAISED.text = ""
    try:
        return forward(*inputs, **keywords)
    except RuntimeError as error:
        if _RAISED.text in str(error):
            raise
        raise RuntimeError(f"{str(error).rstrip()} {_RAISED.text}\n") from None
