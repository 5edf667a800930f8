"""The style-only probe: can the group be told without reading a single content word?

A naive Bayes sees how many words a query has, whether it begins with a question word or with "i", has a digit, says
"my" and so on. If that alone sorts the groups, a model trained on the table will learn style and fail on real shoppers:
a table over ``LIMIT`` is refused. Chance is one over the number of groups.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from math import log

from models.data.table import Row

LIMIT = 0.50

_QUESTION = frozenset(
    [
        "who",
        "whom",
        "whose",
        "what",
        "what's",
        "when",
        "where",
        "why",
        "which",
        "how",
        "is",
        "are",
        "was",
        "were",
        "do",
        "does",
        "did",
        "can",
        "could",
        "will",
    ]
)


def style_features(text: str) -> tuple[int, ...]:
    """Small whole numbers that describe how a query is said, none of them what it says."""
    words = text.split()
    return (
        min(len(words), 15),
        words[0] in _QUESTION,
        "?" in text,
        words[0] in {"i", "i'm", "im", "i'd", "id"},
        any(character.isdigit() for character in text),
        "my" in words,
        text != text.lower(),
        bool(re.search(r"[^\w\s]", text)),
    )


def probe(rows: Sequence[Row]) -> float:
    """Mean recall over the groups of the style-only naive Bayes, fitted on half of the rows and tried on the rest.

    The halves alternate in the sorted texts, so the figure has no chance in it. Groups count alike, however many rows
    they have.
    """
    ordered = sorted(rows, key=lambda row: row.text)
    counts: defaultdict[str, list[Counter[int]]] = defaultdict(lambda: [Counter() for _ in style_features("a")])
    for row in ordered[::2]:
        for counter, value in zip(counts[row.group], style_features(row.text), strict=True):
            counter[value] += 1
    hits: defaultdict[str, list[bool]] = defaultdict(list)
    for row in ordered[1::2]:
        hits[row.group].append(_most_likely(counts, style_features(row.text)) == row.group)
    return sum(sum(found) / len(found) for found in hits.values()) / len(hits)


def _most_likely(counts: dict[str, list[Counter[int]]], features: Sequence[int]) -> str:
    # Laplace smoothing over at most 16 values a feature; equal priors, since groups count alike.
    return max(
        sorted(counts),
        key=lambda group: sum(
            log((counter[value] + 1) / (counter.total() + 16))
            for counter, value in zip(counts[group], features, strict=True)
        ),
    )
