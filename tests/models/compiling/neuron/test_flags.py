"""Whatever is asked for, the compilers are told how to round, how to transpose and for how many cores."""

from __future__ import annotations

import pytest

from models.compiling.neuron.flags import Flags, FlagsError, inf1_flags, inf2_flags

ONE_CORE = ("--neuroncore-pipeline-cores", "1")

INF2 = ("--target", "inf2", "--model-type", "transformer", "--optlevel", "2")


def test_by_default_only_factors_are_rounded() -> None:
    assert inf1_flags((), None, pipeline_cores=1) == Flags(
        ("--fast-math", "fp32-cast-matmult", "fast-relayout", *ONE_CORE), "bf16-matmult"
    )
    assert inf2_flags("matmult", None) == Flags(
        (*INF2, "--auto-cast", "matmult", "--auto-cast-type", "bf16"),
        "bf16-matmult",
    )


@pytest.mark.parametrize(
    ("fast_math", "fp32_cast", "arguments", "precision"),
    [
        (["all"], None, ["--fast-math", "all"], "bf16"),
        (["none"], None, ["--fast-math", "none"], "bf16-matmult"),
        (["all", "no-fast-relayout"], None, ["--fast-math", "all", "no-fast-relayout"], "bf16"),
        (["no-fast-relayout"], None, ["--fast-math", "fp32-cast-matmult", "no-fast-relayout"], "bf16-matmult"),
        (["fp32-cast-all-fp16"], None, ["--fast-math", "fp32-cast-all-fp16", "fast-relayout"], "fp16"),
        ([], "matmult-fp16", ["--fp32-cast", "matmult-fp16", "--fast-math", "fast-relayout"], "fp16-matmult"),
        (["no-fast-relayout"], "all", ["--fp32-cast", "all", "--fast-math", "no-fast-relayout"], "bf16"),
    ],
)
def test_what_is_asked_of_neuron_cc(
    fast_math: list[str], fp32_cast: str | None, arguments: list[str], precision: str
) -> None:
    assert inf1_flags(fast_math, fp32_cast, pipeline_cores=1) == Flags((*arguments, *ONE_CORE), precision)


def test_cores_of_a_pipeline_are_passed_on() -> None:
    assert inf1_flags((), None, pipeline_cores=4).arguments[-1] == "4"


@pytest.mark.parametrize(
    ("cast", "kind", "last", "precision"),
    [
        ("none", None, ("--auto-cast", "none"), "float32"),
        ("all", None, ("--auto-cast-type", "bf16"), "bf16"),
        ("all", "fp16", ("--auto-cast-type", "fp16"), "fp16"),
        ("matmult", "tf32", ("--auto-cast-type", "tf32"), "tf32-matmult"),
    ],
)
def test_what_is_asked_of_neuronx_cc(cast: str, kind: str | None, last: tuple[str, str], precision: str) -> None:
    flags = inf2_flags(cast, kind)
    assert (flags.arguments[-2:], flags.precision) == (last, precision)


@pytest.mark.parametrize(
    ("fast_math", "fp32_cast", "said"),
    [
        (["fast"], None, "--fast-math: fast is unknown; it takes all, none, fp32-cast-all,"),
        (["all", "none"], None, "all, none exclude each other"),
        (["fast-relayout", "no-fast-relayout"], None, "fast-relayout, no-fast-relayout exclude each other"),
        (["none"], "all", "--fp32-cast all would override --fast-math none: give one of them"),
    ],
)
def test_flags_that_contradict_each_other_are_refused(fast_math: list[str], fp32_cast: str | None, said: str) -> None:
    with pytest.raises(FlagsError, match=said):
        inf1_flags(fast_math, fp32_cast, pipeline_cores=1)


def test_a_type_to_cast_nothing_to_is_refused() -> None:
    with pytest.raises(FlagsError, match="--auto-cast none casts nothing"):
        inf2_flags("none", "bf16")
