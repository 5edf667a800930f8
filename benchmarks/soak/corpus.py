"""The texts of a soak and the answer of each, asked alone beforehand: what every later answer is compared with.

An answer is a hash of its query as long as no two texts have the same one, so texts that the answers can't tell apart
are left out. That holds for the null target, whose logits are the mean of the query's embeddings, and for a real model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.tools.load.queries import OWN_QUERIES, make_up
from benchmarks.raw_http import Connection, post

# Confidences have six digits, and a quantised target moves by up to 1e-6 with the neighbours of a query.
TOLERANCE = 5e-6
LONG_SHARE = 8  # one text in so many is long
PATIENCE_MS = 10_000


def texts(count: int, *, seed: int) -> list[str]:
    """``count`` distinct texts: short queries, and long ones of up to some hundred words, most of which are cut."""
    random = np.random.default_rng(seed)
    short = [*OWN_QUERIES, *make_up(count)][:count]
    return [
        " ".join(random.choice(short, random.integers(3, 60))) if number % LONG_SHARE == LONG_SHARE - 1 else text
        for number, text in enumerate(short)
    ]


def vector(result: dict[str, Any]) -> tuple[float, ...]:
    """Confidences in the order of the labels' names, which no ranking changes."""
    ranked = {each["intent"]: each["confidence"] for each in result["intents"]}
    return tuple(ranked[name] for name in sorted(ranked))


class Corpus:
    """``texts``, all of which the answers tell apart, and whether an answer is that of a text."""

    def __init__(self, answers: Mapping[str, tuple[float, ...]]) -> None:
        self._answers = {text: answers[text] for text in _distinguishable(answers)}
        self.texts: Sequence[str] = list(self._answers)
        self.left_out = len(answers) - len(self.texts)

    @classmethod
    def ask(cls, address: tuple[str, int], texts: Sequence[str]) -> Corpus:
        """Ask for each text alone, one after the other. Raises RuntimeError when one isn't answered by the model."""
        answers = {}
        with Connection(address) as connection:
            for text in texts:
                reply = connection.request(post("/v1/intent", {"query": text, "timeout_ms": PATIENCE_MS}))
                if reply.status != 200 or reply.json()["source"] not in ("model", "cache"):
                    raise RuntimeError(f"asked alone, {text[:40]!r} was answered {reply.status}: {reply.body[:200]!r}")
                answers[text] = vector(reply.json())
        return cls(answers)

    def is_answer(self, text: str, result: dict[str, Any]) -> bool:
        """Whether ``result``, a member of the service's reply, is what ``text`` got alone."""
        alone, found = self._answers[text], vector(result)
        return (
            result["query"] == text
            and len(found) == len(alone)
            and all(abs(one - other) <= TOLERANCE for one, other in zip(found, alone, strict=True))
        )


def _distinguishable(answers: Mapping[str, tuple[float, ...]]) -> list[str]:
    """The texts, less those whose answer is within twice the tolerance of that of one before."""
    kept: list[str] = []
    vectors = np.empty((len(answers), len(next(iter(answers.values()), ()))))
    for text, answer in answers.items():
        if not _is_near(vectors[: len(kept)], np.array(answer)):
            vectors[len(kept)] = answer
            kept.append(text)
    return kept


def _is_near(vectors: NDArray[np.float64], vector: NDArray[np.float64]) -> bool:
    """Whether ``vector`` [labels] is too near to one of ``vectors`` [n, labels]."""
    return bool((np.abs(vectors - vector).max(axis=1) <= 2 * TOLERANCE).any()) if len(vectors) else False
