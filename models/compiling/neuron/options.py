"""The options of ``query-intent compile`` that only Inferentia has, and the order that they make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from models.compiling.neuron.flags import (
    AUTO_CAST_TYPES,
    AUTO_CASTS,
    DEFAULT_AUTO_CAST,
    DEFAULT_AUTO_CAST_TYPE,
    DEFAULT_FAST_MATH,
    FAST_MATH,
    FP32_CASTS,
    RELAYOUTS,
    Flags,
    FlagsError,
    inf1_flags,
    inf2_flags,
)
from models.compiling.order import NeuronOrder

CHIPS = ("inf1", "inf2")
DEFAULT_TIMEOUT_S = 3600.0
_ONLY = {
    "fast_math": ("inf1",),
    "fp32_cast": ("inf1",),
    "pipeline_cores": ("inf1",),
    "auto_cast": ("inf2",),
    "auto_cast_type": ("inf2",),
    "compiler_workdir": CHIPS,
    "compiler_timeout": CHIPS,
    "jobs": CHIPS,
    "one_query_a_row": CHIPS,
}
_NAMES = {"pipeline_cores": "neuroncore-pipeline-cores"}

_C = TypeVar("_C", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--fast-math",
        metavar="CAST[,RELAYOUT]",
        help=f"inf1: how neuron-cc rounds: {', '.join(FAST_MATH)}, and how it transposes: {', '.join(RELAYOUTS)}. The "
        "chip multiplies in 16 bits only and adds in 32. By default just the factors are rounded, to bf16; softmax and "
        "norms stay float32, which neuron-cc's own default, `all`, rounds too: faster, and the first thing to try if "
        "rows take too long, since the comparison with float32 says what it costs. Where that fails, "
        f"`fp32-cast-matmult-fp16,no-fast-relayout` is the most accurate.  [default: {','.join(DEFAULT_FAST_MATH)}]",
    ),
    click.option(
        "--fp32-cast",
        type=click.Choice(list(FP32_CASTS)),
        help="inf1: the older way to say what is rounded; goes before --fast-math, which then only transposes.",
    ),
    click.option(
        "--neuroncore-pipeline-cores",
        "pipeline_cores",
        type=click.IntRange(1, 64),
        help="inf1: cores that share one copy of the model, layer by layer. One copy a core answers more queries and "
        "needs no neighbour; more cores a copy are for models that one core is too slow for.  [default: 1]",
    ),
    click.option(
        "--auto-cast",
        type=click.Choice(AUTO_CASTS),
        help="inf2: what neuronx-cc rounds. Its own default was `matmult` until SDK 2.26 and is `none` since, so it's "
        "always told. `matmult` rounds the factors of matrix products, as for AWS's published figures of BERT, and "
        f"leaves sums, softmax and norms in float32; `all` rounds those too.  [default: {DEFAULT_AUTO_CAST}]",
    ),
    click.option(
        "--auto-cast-type",
        type=click.Choice(AUTO_CAST_TYPES),
        help="inf2: to what. bf16 has float32's range; tf32 is finer and slower; fp16 is finer and ends at 65,504.  "
        f"[default: {DEFAULT_AUTO_CAST_TYPE}]",
    ),
    click.option(
        "--one-query-a-row",
        is_flag=True,
        default=None,
        help="inf1, inf2: rows of one query each (S = 1). Only where a compiler refuses the packed graph: a row takes "
        "the same time, however few of its tokens a query needs.",
    ),
    click.option(
        "--jobs",
        type=click.IntRange(1, 64),
        help="inf1, inf2: buckets compiled at once. Each compiler takes gigabytes of memory.  [default: 1]",
    ),
    click.option(
        "--compiler-workdir",
        type=click.Path(path_type=Path, file_okay=False),
        help="inf1, inf2: what was compiled, with the compiler's files and log, by bucket. Whatever was compiled there "
        "of the same weights, flags and SDK isn't compiled again.  [default: BUNDLE.compiler]",
    ),
    click.option(
        "--compiler-timeout",
        type=click.FloatRange(0, min_open=True),
        metavar="SECONDS",
        help=f"inf1, inf2: for one bucket, before its compiler is ended.  [default: {DEFAULT_TIMEOUT_S:g}]",
    ),
)


def neuron_options(command: _C) -> _C:
    """A decorator; ``neuron_order`` reads what they got."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def neuron_order(target: str, bundle: Path, given: Mapping[str, Any]) -> NeuronOrder | None:
    """What the options ``given`` (None: not given) order, where ``target`` is a chip.

    Raises ``FlagsError`` for options of another target and flags that exclude each other.
    """
    for name, value in given.items():
        if value is not None and target not in _ONLY[name]:
            flag = _NAMES.get(name, name.replace("_", "-"))
            raise FlagsError(f"--{flag} is for --target {' or '.join(_ONLY[name])}, not {target}")
    if target not in CHIPS:
        return None
    flags = _flags(target, given)
    return NeuronOrder(
        compiler_args=flags.arguments,
        precision=flags.precision,
        pipeline_cores=given["pipeline_cores"] or 1,
        workdir=given["compiler_workdir"] or bundle.with_name(f"{bundle.name}.compiler"),
        timeout_s=given["compiler_timeout"] or DEFAULT_TIMEOUT_S,
        jobs=given["jobs"] or 1,
    )


def _flags(target: str, given: Mapping[str, Any]) -> Flags:
    if target == "inf2":
        return inf2_flags(given["auto_cast"] or DEFAULT_AUTO_CAST, given["auto_cast_type"])
    fast_math = given["fast_math"].split(",") if given["fast_math"] is not None else ()
    return inf1_flags(fast_math, given["fp32_cast"], pipeline_cores=given["pipeline_cores"] or 1)
