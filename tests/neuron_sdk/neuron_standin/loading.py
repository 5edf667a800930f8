"""``torch.jit.load`` as the SDK wraps it: what it loads is on a NeuronCore when it returns."""

from __future__ import annotations

import functools
import hashlib
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import torch

from neuron_standin import artefact, runtime
from neuron_standin.artefact import Program
from neuron_standin.error_text import keep_error_text
from neuron_standin.runtime import Loaded

_torch_load = torch.jit.load
# A process holds what a model computes once, on however many cores it is loaded.
_PROGRAMS: weakref.WeakValueDictionary[bytes, Program] = weakref.WeakValueDictionary()
_FIRST_CALL = threading.Lock()


@functools.wraps(_torch_load)
def load(f: Any, *args: Any, **kwargs: Any) -> torch.jit.ScriptModule:
    module = _torch_load(f, *args, **kwargs)
    for owner, name, blob in models_of(module):
        place(owner, name, _program(blob), *runtime.current_placement())
    keep_error_text(module)
    return module


def wrap_load() -> None:
    torch.jit.load = load


def models_of(module: torch.nn.Module) -> Iterator[tuple[torch.nn.Module, str, torch.Tensor]]:
    """The modules inside that hold a compiled model, under which name, and the bytes that are it."""
    for owner in list(module.modules()):
        for name, buffer in list(owner.named_buffers(recurse=False)):
            if artefact.key_of(buffer):
                yield owner, name, buffer


def place(owner: torch.nn.Module, name: str, program: Program, start: int, count: int) -> None:
    """Load onto cores and let the buffer name that copy only: the bytes of the model are not needed any more."""
    key = artefact.new_key()
    runtime.runtime().load(key, program, start, count)
    setattr(owner, name, artefact.key_tensor(key))
    weakref.finalize(owner, runtime.unload, key)


def loaded(blob: torch.Tensor) -> Loaded:
    """The copy that a buffer names. A fresh trace is loaded here, by its first call."""
    key = artefact.key_of(blob)
    assert key, "the model of a neuron::forward op is none"
    if found := runtime.runtime().loaded(key):
        return found
    with _FIRST_CALL:
        return runtime.runtime().loaded(key) or runtime.runtime().load(key, _program(blob))


def program_of(blob: torch.Tensor) -> Program:
    """What a module computes, whether it is on cores already or not."""
    key = artefact.key_of(blob)
    assert key
    found = runtime.loaded(key)
    return found.program if found else _program(blob)


def forget(blob: torch.Tensor) -> None:
    """Unload what a buffer names, if it is loaded."""
    if key := artefact.key_of(blob):
        runtime.unload(key)


def _program(blob: torch.Tensor) -> Program:
    digest = hashlib.sha1(memoryview(blob.numpy())[artefact.KEY_BYTES :]).digest()
    program = _PROGRAMS.get(digest)
    if program is None:
        program = _PROGRAMS[digest] = artefact.unpack(blob, _torch_load)
    return program
