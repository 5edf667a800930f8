"""The student: linear in a query's hashed n-grams, so small that it answers in tens of microseconds.

A query is a bag of hashed n-grams (the hashing trick, Weinberger et al. 2009) and its logits are a sum of their
weights, a row of int8 for each. Training (``models/compiling/student.py``) sees the very features of this module;
whoever changes them raises ``FEATURES``, so that a student of other features is refused at load.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

FEATURES = 1
# What a query is made of, and how much each kind says beside the others. A kind's seed keeps the word "art" apart from
# the piece "art" of "party".
WORD, PAIR, FIRST, LAST, COUNT, PIECE = range(6)
WORD_SHARE, PAIR_SHARE, EDGE_SHARE, COUNT_SHARE, PIECE_SHARE = 2.0, 1.0, 0.5, 0.5, 1.0
PIECE_SIZES = (3, 4, 5)  # bytes of UTF-8 of a word with its edges: characters in English
LARGEST_COUNT = 10  # words; the longest queries are of one length
# A kind of n features gives each n to this power of its share: between a sum (0), in which a long query's pieces shout
# its words down, and a mean (-1), in which it is never surer than a short one (models/LOG.md).
DAMPING = -0.35


class Features(NamedTuple):
    """A query as the student sees it: ``buckets`` [n] int64, with repeats, and what each counts, [n] float32."""

    buckets: NDArray[np.int64]
    values: NDArray[np.float32]


def features(text: str, buckets: int) -> Features:
    """The features of a normalised text, hashed into so many ``buckets``.

    CRC-32, since it is C, takes a seed, costs a tenth of a microsecond and is the same in every process and on every
    machine, which Python's own ``hash`` isn't.
    """
    words = text.encode().split()
    kinds = (
        (WORD_SHARE, [crc32(word, WORD) for word in words]),
        (PAIR_SHARE, [crc32(b"%b %b" % pair, PAIR) for pair in pairwise(words)]),
        (EDGE_SHARE, [crc32(words[0], FIRST), crc32(words[-1], LAST)]),
        (COUNT_SHARE, [crc32(b"%d" % min(len(words), LARGEST_COUNT), COUNT)]),
        (
            PIECE_SHARE,
            [
                crc32(word[start : start + size], PIECE)
                for word in (b" %b " % word for word in words)
                for size in PIECE_SIZES
                for start in range(len(word) - size + 1)
            ],
        ),
    )
    hashes: list[int] = []
    values: list[float] = []
    for share, kind in kinds:
        if kind:  # a query of one word has no pairs
            hashes += kind
            values += [share * len(kind) ** DAMPING] * len(kind)
    return Features(np.array(hashes, np.int64) % buckets, np.array(values, np.float32))


class Student(NamedTuple):
    """Linear in the features: int8 ``weights`` [buckets, labels], and ``scale`` and ``bias`` [labels] in float32."""

    weights: NDArray[np.int8]
    scale: NDArray[np.float32]
    bias: NDArray[np.float32]

    def logits(self, text: str) -> NDArray[np.float32]:
        """[1, labels] of a normalised text."""
        buckets, values = features(text, len(self.weights))
        # The table stays int8: four times the bytes would push the model's weights out of the cache. `take`, since it
        # needs a tenth of the time that indexing with an array does.
        summed: NDArray[np.float32] = values @ self.weights.take(buckets, axis=0).astype(np.float32)
        return (summed * self.scale + self.bias)[None]
