"""What ``query-intent compile`` is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple


class CompileError(ValueError):
    """The target isn't good enough or doesn't belong into the bundle; the message says by how much."""


class LabelledQuery(NamedTuple):
    text: str
    label: str


class Queries(NamedTuple):
    """Normalised queries by what they're for; only a fallback's confidence is fitted on ``labelled`` ones."""

    calibration: Sequence[str]
    holdout: Sequence[str]
    golden: Sequence[str]  # empty: chosen from ``holdout``
    labelled: Sequence[LabelledQuery] = ()


@dataclass(frozen=True, slots=True)
class NeuronOrder:
    """What the compiler of a Neuron target is told, and how it is run."""

    compiler_args: tuple[str, ...]
    precision: str  # what these make of float32, for ``target.json``
    pipeline_cores: int  # that one copy of the model spans
    workdir: Path
    timeout_s: float  # for one row length
    jobs: int  # row lengths compiled at once


@dataclass(frozen=True, slots=True)
class Order:
    """One target, or the fallback. ``name`` and ``version`` are a new bundle's; one that exists keeps its own."""

    target: str
    buckets: list[int]
    min_agreement: float
    seed: int
    name: str
    version: str
    one_query_a_row: bool = False
    chip: NeuronOrder | None = None  # where the target is one
