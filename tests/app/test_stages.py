"""The stages of a request."""

from __future__ import annotations

from app.stages import Stages


def test_the_header_names_each_stage_in_milliseconds() -> None:
    header = Stages(tokenize=0.0000174, queue=0.00031, inference=0.0021, total=0.0026).server_timing()
    assert header == b"tokenize;dur=0.017, queue;dur=0.310, inference;dur=2.100, total;dur=2.600"


def test_a_stage_that_was_not_reached_took_no_time() -> None:
    assert (
        Stages(total=1.5).server_timing()
        == b"tokenize;dur=0.000, queue;dur=0.000, inference;dur=0.000, total;dur=1500.000"
    )


def test_the_names_are_those_of_the_metrics() -> None:
    assert Stages._fields == ("tokenize", "queue", "inference", "total")
