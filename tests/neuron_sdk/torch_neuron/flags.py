"""What ``neuron-cc``'s flags mean for the numbers and the cores. An unknown flag is refused, as the compiler does."""

from __future__ import annotations

from neuron_standin.compiler import CompileError
from neuron_standin.numerics import Cast

# torch 1.13 lacks the first; embeddings stay on the CPU.
UNSUPPORTED = frozenset({"aten::scaled_dot_product_attention", "aten::embedding"})

_CASTS = {
    "all": Cast("all", "bf16"),
    "all-fp16": Cast("all", "fp16"),
    "matmult": Cast("matmult", "bf16"),
    "matmult-bf16": Cast("matmult", "bf16"),
    "matmult-fp16": Cast("matmult", "fp16"),
}
_FAST_MATH = {
    "all": "all",
    "none": "matmult-bf16",
    **{f"fp32-cast-{name}": name for name in _CASTS},
    "fast-relayout": None,
    "no-fast-relayout": None,
}
_OTHERS = {
    "--neuroncore-pipeline-cores",
    "--enable-saturate-infinity",
    "--enable-fast-loading-neuron-binaries",
    "--enable-fast-context-switch",
    "--verbose",
}


def cast_of(arguments: list[str]) -> Cast:
    """There is no float32 matmul on Inf1. An explicit ``--fp32-cast`` wins over ``--fast-math``."""
    chosen = "all"
    for value in _values(arguments, "--fast-math"):
        if value not in _FAST_MATH:
            raise CompileError(f"argument --fast-math: invalid choice: {value!r}")
        chosen = _FAST_MATH[value] or chosen
    for value in _values(arguments, "--fp32-cast"):
        if value not in _CASTS:
            raise CompileError(f"argument --fp32-cast: invalid choice: {value!r}")
        chosen = value
    known = {"--fast-math", "--fp32-cast", *_OTHERS}
    if unknown := [name for name in arguments if name.startswith("-") and name.partition("=")[0] not in known]:
        raise CompileError(f"unrecognized arguments: {' '.join(unknown)}")
    return _CASTS[chosen]


def pipeline_cores_of(arguments: list[str]) -> int:
    return int((_values(arguments, "--neuroncore-pipeline-cores") or ["1"])[-1])


def _values(arguments: list[str], flag: str) -> list[str]:
    """``--flag a b`` as items of their own, or ``--flag=a``."""
    found: list[str] = []
    is_inside = False
    for argument in arguments:
        if argument.startswith("-"):
            name, _, value = argument.partition("=")
            is_inside = name == flag
            found += [value] if is_inside and value else []
        elif is_inside:
            found.append(argument)
    return found
