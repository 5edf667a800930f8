"""A failed compilation is explained from its exit status and from what the SDKs are known to say."""

from __future__ import annotations

import pytest

from models.compiling.neuron.failures import explain

KILLED = "nearly always for lack of memory"


@pytest.mark.parametrize(
    ("log", "said"),
    [
        (
            "INFO:Neuron:Compile command returned: -9\nWARNING:Neuron:torch.neuron.trace failed on _NeuronGraph$698",
            KILLED,
        ),
        ("RuntimeError: neuronx-cc failed with -9", KILLED),
        (
            "[F137] neuronx-cc was forcibly killed - This most commonly occurs due to insufficient system memory.",
            KILLED,
        ),
        ("OSError: [Errno 28] No space left on device", "the disk is full"),
        ("TypeError: Descriptors cannot not be created directly.", "protobuf<3.20"),
        ("ERROR:Neuron:Please check that neuron-cc is installed and working properly.", "isn't installed"),
        ("google.protobuf.message.DecodeError: Error parsing message with type 'tensorflow.GraphDef'", "over the 2 GB"),
        ("AttributeError: module 'torch_neuron.ops.aten' has no attribute 'erfinv'", "--one-query-a-row"),
        (
            "WARNING:Neuron:torch.neuron.trace failed on _NeuronGraph$1; falling back to native python function call",
            "left the model to the CPU",
        ),
        ("No operator is placed on Neuron runtime; returning a CPU trace", "left the model to the CPU"),
        ("row_64.pt: nothing in its graph runs on a NeuronCore (no neuron::forward)", "left the model to the CPU"),
        ("RuntimeError: Neuron runtime cannot be initialized; cannot determine the number", "needs a chip to compile"),
        ("[INTERNAL_ERROR] [NCC_INIC901] Internal Compiler Error", "a bug of its own"),
    ],
)
def test_what_the_sdks_say_is_explained_and_quoted(log: str, said: str) -> None:
    explained = explain(1, f"INFO: compiling\n{log}\nINFO: done")
    assert said in explained
    assert log.splitlines()[0][:20] in explained


def test_a_process_that_was_killed_needs_no_log() -> None:
    assert KILLED in explain(-9, "")


def test_what_nobody_knows_is_quoted_from_its_end() -> None:
    explained = explain(2, "one\ntwo\n\nthree\nfour\n")
    assert explained.splitlines() == [
        "the compiler ended with status 2, and this log doesn't say why",
        "  two",
        "  three",
        "  four",
    ]
    assert explain(-11, "").startswith("the compiler ended with signal 11")
