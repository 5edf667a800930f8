"""What the compilers are told about arithmetic: always explicitly, since defaults changed between versions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

# neuron-cc's own names (its command line reference), and what each makes of float32.
FP32_CASTS = {
    "all": "bf16",
    "all-fp16": "fp16",
    "matmult": "bf16-matmult",
    "matmult-bf16": "bf16-matmult",
    "matmult-fp16": "fp16-matmult",
}
RELAYOUTS = ("fast-relayout", "no-fast-relayout")
FAST_MATH = {
    "all": "bf16",
    "none": "bf16-matmult",
    **{f"fp32-cast-{cast}": precision for cast, precision in FP32_CASTS.items()},
}
# Sums, softmax, layer norm and GELU stay float32; only what is multiplied is rounded to bf16. The default of neuron-cc,
# `all`, rounds those as well, which cost BERT-large 1.2 points of F1 on SQuAD (aws-neuron-sdk issue 301). Fast relayout
# transposes in fp16 here, finer than the bf16 that every transposed tensor of this graph is multiplied in next.
DEFAULT_FAST_MATH = ("fp32-cast-matmult", "fast-relayout")

AUTO_CASTS = ("none", "matmult", "all")
AUTO_CAST_TYPES = ("bf16", "fp16", "tf32", "fp8_e4m3")
# What AWS's published figures of BERT on Inferentia 2 were measured with, and neuronx-cc's default until SDK 2.26.
DEFAULT_AUTO_CAST, DEFAULT_AUTO_CAST_TYPE = "matmult", "bf16"


class FlagsError(ValueError):
    """Flags that no compiler takes together; the message names them."""


class Flags(NamedTuple):
    """For the compiler, and in a word for ``target.json``."""

    arguments: tuple[str, ...]
    precision: str


def inf1_flags(fast_math: Sequence[str], fp32_cast: str | None, *, pipeline_cores: int) -> Flags:
    """For neuron-cc. ``fast_math`` is one way to cast, one to transpose, or one of each; ``fp32_cast`` wins over it."""
    if unknown := sorted(set(fast_math) - set(FAST_MATH) - set(RELAYOUTS)):
        raise FlagsError(
            f"--fast-math: {', '.join(unknown)} is unknown; it takes {', '.join([*FAST_MATH, *RELAYOUTS])}"
        )
    casts = [name for name in fast_math if name in FAST_MATH]
    relayouts = [name for name in fast_math if name in RELAYOUTS]
    if len(casts) > 1 or len(relayouts) > 1:
        raise FlagsError(f"--fast-math: {', '.join(casts if len(casts) > 1 else relayouts)} exclude each other")
    if fp32_cast is not None and casts:
        raise FlagsError(f"--fp32-cast {fp32_cast} would override --fast-math {casts[0]}: give one of them")
    if fp32_cast is None and not casts:
        casts = [DEFAULT_FAST_MATH[0]]
    if casts not in (["all"], ["none"]) and not relayouts:  # those two say how to transpose, too
        relayouts = [DEFAULT_FAST_MATH[1]]
    arguments = ["--fp32-cast", fp32_cast] if fp32_cast else []
    arguments += ["--fast-math", *casts, *relayouts, "--neuroncore-pipeline-cores", str(pipeline_cores)]
    return Flags(tuple(arguments), FP32_CASTS[fp32_cast] if fp32_cast else FAST_MATH[casts[0]])


def inf2_flags(auto_cast: str, auto_cast_type: str | None) -> Flags:
    """For neuronx-cc."""
    if auto_cast == "none" and auto_cast_type is not None:
        raise FlagsError(f"--auto-cast none casts nothing, not to {auto_cast_type} either: give one of them")
    kind = auto_cast_type or DEFAULT_AUTO_CAST_TYPE
    arguments = ["--target", "inf2", "--model-type", "transformer", "--optlevel", "2", "--auto-cast", auto_cast]
    if auto_cast == "none":
        return Flags(tuple(arguments), "float32")
    precision = f"{kind}-matmult" if auto_cast == "matmult" else kind
    return Flags((*arguments, "--auto-cast-type", kind), precision)
