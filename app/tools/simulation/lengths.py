"""How many tokens queries have: by a stated distribution, or as in a file."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from app.bundle import TOKENIZER, Bundle
from app.text import normalise
from app.tokenization import Tokenizer

SHORTEST, LONGEST = 3, 512  # [CLS] word [SEP]; what a BERT has positions for
# Of the standard normal distribution: what 99 % stay under.
_Z99 = 2.3263478740408408
# Of all log-normal distributions of one mean, the largest P99 is this many times the mean.
_LARGEST_P99 = math.exp(_Z99**2 / 2)


class Lengths(Protocol):
    """How long queries are."""

    def draw(self, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Tokens of so many queries, special tokens included."""
        ...


@dataclass(frozen=True, slots=True)
class LogNormal:
    """Of this ``mean`` and 99th percentile; always the mean where there is no ``p99``.

    Product queries are like that: up to the 99th percentile, the quantiles of 2,764 of WebShop, WANDS and ESCI differ
    from those of mean 9 and P99 22 by one token at most.
    """

    mean: float
    p99: float | None = None

    @classmethod
    def stated(cls, text: str) -> LogNormal:
        """Of "9:22", mean and 99th percentile, or "16". Raises ``ValueError`` that says what is wrong."""
        try:
            mean, *rest = map(float, text.split(":", 1))
        except ValueError:
            raise ValueError(f"{text!r} is neither TOKENS nor MEAN:P99") from None
        if not SHORTEST <= mean <= LONGEST:
            raise ValueError(f"{text!r}: queries have {SHORTEST} to {LONGEST} tokens, special tokens included")
        if rest and not mean < rest[0] <= mean * _LARGEST_P99:
            raise ValueError(f"{text!r}: P99 is over the mean and at most {_LARGEST_P99:.1f} times it")
        return cls(mean, *rest)

    def draw(self, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
        sigma = 0.0
        if self.p99 is not None:
            # mean = exp(mu + sigma² / 2) and p99 = exp(mu + z sigma); of the two solutions the one that is no spike.
            sigma = _Z99 - math.sqrt(_Z99**2 - 2 * math.log(self.p99 / self.mean))
        tokens = rng.lognormal(math.log(self.mean) - sigma**2 / 2, sigma, count)
        return np.rint(tokens).clip(SHORTEST).astype(np.int64)


class Observed:
    """As these queries of a file are, tokenised as ``bundle`` does it. Raises ``ValueError`` where none is left."""

    def __init__(self, queries: Iterable[str], bundle: Bundle) -> None:
        longest = bundle.manifest.max_tokens
        tokenizer = Tokenizer(bundle.path / TOKENIZER, max_tokens=longest, vocabulary=len(bundle.embeddings().word))
        texts = (normalise(query, max_tokens=longest) for query in queries)
        self.tokens = np.array([len(tokenizer.encode(text).ids) for text in texts if text], np.int64)
        if not self.tokens.size:
            raise ValueError("no query that is not blank")

    def draw(self, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
        return rng.choice(self.tokens, count)
