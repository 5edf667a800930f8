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
from cachebox import LRUCache
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


# Words and pairs of which a scorer keeps what they add up to: some megabytes. Longer ones are no words, and come once.
WORDS = 20_000
LONGEST_WORD = 24  # bytes


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
    pairs = [crc32(b"%b %b" % pair, PAIR) for pair in pairwise(words)]  # none of a query of one word
    pieces = [piece for word in words for piece in _pieces(word)]
    kinds = (
        (WORD_SHARE, [crc32(word, WORD) for word in words]),
        (PAIR_SHARE, pairs),
        (EDGE_SHARE, [crc32(words[0], FIRST), crc32(words[-1], LAST)]),
        (COUNT_SHARE, [crc32(b"%d" % min(len(words), LARGEST_COUNT), COUNT)]),
        (PIECE_SHARE, pieces),
    )
    hashes = [each for _, kind in kinds for each in kind]
    values = [_value(share, len(kind)) for share, kind in kinds for _ in kind]
    return Features(np.array(hashes, np.int64) % buckets, np.array(values, np.float32))


def _pieces(word: bytes) -> list[int]:
    edged = b" %b " % word
    return [crc32(edged[start : start + size], PIECE) for size in PIECE_SIZES for start in range(len(edged) - size + 1)]


def _value(share: float, count: int) -> float:
    """Of each of ``count`` features of a kind."""
    return float(share * count**DAMPING)


class Student(NamedTuple):
    """Linear in the features: int8 ``weights`` [buckets, labels], and ``scale`` and ``bias`` [labels] in float32."""

    weights: NDArray[np.int8]
    scale: NDArray[np.float32]
    bias: NDArray[np.float32]


class _Word(NamedTuple):
    """What a word adds: how many ``pieces``, and the weights [labels] float32 of itself, its pieces and its places."""

    pieces: int
    of_itself: NDArray[np.float32]
    of_pieces: NDArray[np.float32]
    as_first: NDArray[np.float32]
    as_last: NDArray[np.float32]


class Scorer:
    """A student at work: not thread-safe, since it keeps what it summed up for each word, most of a query's features.

    Everything is a few numbers long, so a call into numpy counts and not what it computes.
    """

    def __init__(self, student: Student) -> None:
        self._weights = student.weights
        self._scale = student.scale
        self._words: LRUCache[bytes, _Word] = LRUCache(WORDS)
        self._pairs: LRUCache[bytes, NDArray[np.float32]] = LRUCache(WORDS)
        counts = [self._row(crc32(b"%d" % count, COUNT)) for count in range(LARGEST_COUNT + 1)]
        self._counts = [COUNT_SHARE * row * student.scale + student.bias for row in counts]

    def logits(self, text: str) -> NDArray[np.float32]:
        """[1, labels] of a normalised text."""
        words = text.encode().split()
        known = [self._words.get(word) or self._add_up(word) for word in words]
        first, count = known[0], len(known)
        of_words, of_pieces, pieces = first.of_itself, first.of_pieces, first.pieces
        for each in known[1:]:
            of_words = of_words + each.of_itself
            of_pieces = of_pieces + each.of_pieces
            pieces += each.pieces
        summed = _value(WORD_SHARE, count) * of_words + _value(PIECE_SHARE, pieces) * of_pieces
        summed += _value(EDGE_SHARE, 2) * (first.as_first + known[-1].as_last)
        if count > 1:
            of_pairs = self._pair(words[0], words[1])
            for start in range(1, count - 1):
                of_pairs = of_pairs + self._pair(words[start], words[start + 1])
            summed += _value(PAIR_SHARE, count - 1) * of_pairs
        logits: NDArray[np.float32] = summed * self._scale + self._counts[min(count, LARGEST_COUNT)]
        return logits[None]

    def _add_up(self, word: bytes) -> _Word:
        pieces = _pieces(word)
        # The table stays int8: four times the bytes would push the model's weights out of the cache. `take`, since it
        # needs a tenth of the time that indexing with an array does.
        rows = self._weights.take([piece % len(self._weights) for piece in pieces], axis=0)
        of_places = (self._row(crc32(word, place)) for place in (FIRST, LAST))
        added = _Word(len(pieces), self._row(crc32(word, WORD)), rows.sum(axis=0, dtype=np.float32), *of_places)
        if len(word) <= LONGEST_WORD:
            self._words[word] = added
        return added

    def _pair(self, left: bytes, right: bytes) -> NDArray[np.float32]:
        pair = b"%b %b" % (left, right)
        row = self._pairs.get(pair)
        if row is None:
            row = self._row(crc32(pair, PAIR))
            if len(pair) <= 2 * LONGEST_WORD:
                self._pairs[pair] = row
        return row

    def _row(self, hashed: int) -> NDArray[np.float32]:
        row: NDArray[np.float32] = self._weights[hashed % len(self._weights)].astype(np.float32)
        return row
