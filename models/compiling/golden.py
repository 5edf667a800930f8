"""Golden queries: what every replica must answer right before it takes traffic."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from models.compiling.order import CompileError

_ASKED = 500  # at most, of the held-out queries, evenly spread
_MOST = 20  # each is asked in every bucket at every start


def choose_golden(
    held_out: Sequence[str],
    answer: Callable[[Sequence[str]], NDArray[np.float32]],
    is_short: Callable[[str], bool],
) -> list[str]:
    """The surest held-out query of each label that any gets, at most ``_MOST`` of them, and the surest short one.

    A sure answer moves little under int8, so that one which does move shows a replica that computes something else.
    ``answer`` gives probabilities [texts, labels]; ``is_short`` says whether a query fits the smallest bucket, which
    has to be proved as well. Raises ``CompileError`` when none does.
    """
    asked = held_out[:: -(-len(held_out) // _ASKED)]
    probabilities = answer(asked)
    short = [place for place, text in enumerate(asked) if is_short(text)]
    if not short:
        raise CompileError("no held-out query fits the smallest bucket: add short ones, or give --golden or --buckets")
    surest = [
        int(column.argmax()) for column in np.where(_is_first(probabilities), probabilities, 0.0).T if column.any()
    ]
    surest.sort(key=lambda place: -float(probabilities[place].max()))
    chosen = surest[:_MOST]
    if not set(chosen) & set(short):
        chosen.append(max(short, key=lambda place: float(probabilities[place].max())))
    return [asked[place] for place in chosen]


def _is_first(probabilities: NDArray[np.float32]) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = probabilities == probabilities.max(axis=1, keepdims=True)
    return found
