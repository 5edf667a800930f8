"""What ``neuronx-cc``'s flags mean for the numbers. Without any nothing is cast, as since SDK 2.27."""

from __future__ import annotations

from neuron_standin.compiler import CompileError
from neuron_standin.numerics import Cast

_CHOICES = {
    "--auto-cast": ("none", "matmult", "all"),
    "--auto-cast-type": ("bf16", "fp16", "tf32"),  # fp8_e4m3 is real and not played
    "--optlevel": ("1", "2", "3"),
    "-O1": (),
    "-O2": (),
    "-O3": (),
    "--model-type": ("generic", "transformer", "unet-inference"),
    "--target": ("inf2", "trn1", "trn1n", "trn2"),
    "--verbose": (),
}


def cast_of(arguments: list[str]) -> Cast:
    for argument in arguments:
        if argument.startswith("-") and argument.partition("=")[0] not in _CHOICES:
            raise CompileError(f"unrecognized arguments: {argument}")
    for name, choices in _CHOICES.items():
        value = option(arguments, name)
        if choices and value is not None and value not in choices:
            raise CompileError(f"argument {name}: invalid choice: {value!r}")
    return Cast(option(arguments, "--auto-cast") or "none", option(arguments, "--auto-cast-type") or "bf16")


def option(arguments: list[str], name: str) -> str | None:
    """``--name value`` as items of their own, or ``--name=value``."""
    found = None
    for index, argument in enumerate(arguments):
        if argument == name:
            found = arguments[index + 1] if index + 1 < len(arguments) else ""
        elif argument.startswith(f"{name}="):
            found = argument.partition("=")[2]
    return found
