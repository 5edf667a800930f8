"""Golden queries: what every replica must answer right before it takes traffic."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

_ASKED = 500  # of the held-out queries, evenly spread
_MOST = 20  # each is asked in every bucket at every start


def choose_golden(held_out: Sequence[str], answer: Callable[[Sequence[str]], NDArray[np.float32]]) -> list[str]:
    """The surest held-out query of each label that any gets, at most ``_MOST`` of them.

    A sure answer moves little under int8, so that one which does move shows a replica that computes something else.
    ``answer`` gives probabilities [texts, labels].
    """
    asked = held_out[:: max(1, len(held_out) // _ASKED)]
    probabilities = answer(asked)
    surest = [
        int(column.argmax()) for column in np.where(_is_first(probabilities), probabilities, 0.0).T if column.any()
    ]
    surest.sort(key=lambda place: -float(probabilities[place].max()))
    return [asked[place] for place in surest[:_MOST]]


def _is_first(probabilities: NDArray[np.float32]) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = probabilities == probabilities.max(axis=1, keepdims=True)
    return found
