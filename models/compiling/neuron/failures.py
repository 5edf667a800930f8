"""What a failed compilation means, read off its exit status and its log."""

from __future__ import annotations

import re
import signal

_MEMORY = (
    "killed, nearly always for lack of memory: compile on a machine with more (AWS suggests c5.4xlarge with 32 GiB; no "
    "chip is needed), with fewer --jobs, or shorter --buckets"
)
_ONE_QUERY = "if it is the 4-D mask or the pooling that the compiler can't take, --one-query-a-row is the simpler graph"

# The first that is found counts, so causes come before what they cause.
_CAUSES: tuple[tuple[str, str], ...] = (
    (r"Compile command returned: -9|returned non-zero exit status -9|failed with -9|\[F137\]|forcibly killed", _MEMORY),
    (r"MemoryError|Cannot allocate memory|std::bad_alloc", "out of memory: see --jobs, and use a machine with more"),
    (r"No space left on device", "the disk is full: the compiler writes gigabytes to --compiler-workdir"),
    (
        r"Descriptors cannot (?:not )?be created directly|cannot import name 'builder' from 'google\.protobuf",
        "the installed protobuf is too new for the SDK: pip install 'protobuf<3.20'",
    ),
    (
        r"check that neuron-cc is installed|No module named 'neuronc|neuronx?-cc: (?:command )?not found|"
        r"No such file or directory: '[^']*neuronx?-cc'",
        "the compiler isn't installed, or isn't on PATH",
    ),
    (
        r"DecodeError.*GraphDef|exceeded maximum protobuf size",
        "the model is over the 2 GB that one graph of Inferentia 1 holds: use a smaller one",
    ),
    (
        r"[Uu]nsupported (?:HLO )?op|[Oo]perator \S+ is not supported|not supported|AttributeError|"
        r"ops? of \d+ different types in the TorchScript that are not compiled",
        f"the compiler lacks an operator; {_ONE_QUERY}",
    ),
    (
        r"No operator is placed on Neuron runtime|falling back to native python function call|"
        r"in its graph runs on a NeuronCore|part of its graph runs on the CPU",
        f"the SDK gave up and would have left the model to the CPU, in silence; {_ONE_QUERY}",
    ),
    (
        r"Neuron runtime cannot be initialized|Runtime could not be initialized",
        "this version of the SDK needs a chip to compile, and there is none, or another process has its cores",
    ),
    (r"Internal Compiler Error|\[INTERNAL_ERROR\]", f"the compiler has a bug of its own; {_ONE_QUERY}"),
)
_LAST_LINES = 3


def explain(status: int, log: str) -> str:
    """Why a process that ended with ``status`` (negative: of that signal) and said ``log`` failed, and what helps."""
    if status == -signal.SIGKILL:
        return _MEMORY
    for pattern, cause in _CAUSES:
        # The last, since an exception that was raised from others says it best; indented lines are code of a traceback.
        if found := re.findall(rf"^(?=\S).*(?:{pattern}).*$", log, re.MULTILINE):
            return f"{cause}\n  {found[-1].strip()[:500]}"
    ended = f"signal {-status}" if status < 0 else f"status {status}"
    said = [line.strip()[:500] for line in log.splitlines() if line.strip()][-_LAST_LINES:]
    return "\n  ".join([f"the compiler ended with {ended}, and this log doesn't say why", *said])
