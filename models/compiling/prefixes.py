"""Queries while they are typed: a search box that asks at each key sends more of these than whole ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from app.text import normalise

SHORTEST = 3  # characters; fewer say nothing


def random_prefixes(queries: Sequence[str], seed: int, *, max_tokens: int) -> list[str]:
    """The first ``SHORTEST`` or more characters of each query that has still more, normalised; one may come twice."""
    long = [query for query in queries if len(query) > SHORTEST]
    ends = np.random.default_rng(seed).integers(SHORTEST, [len(query) for query in long])
    return [normalise(query[:end], max_tokens=max_tokens) for query, end in zip(long, ends, strict=True)]
