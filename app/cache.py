"""Answers that were computed before: the head of search traffic repeats, and a text always gets the same answer.

What is kept is the model's ranked answer as a whole, the deployment's priors in it, so that ``top_k`` and ``abstain``
of each request still apply. It is filed under a digest of the text: no query can be read out of the cache.
"""

from __future__ import annotations

import struct
import sys
import time
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import NamedTuple

from cachebox import LRUCache

from app.ranking import Ranked

KEY_BYTES = 16  # that any two of a billion texts share a digest has a chance of 1 in 10^20
# Bytes of memory that an answer takes beside its packed form: its key and the store's books. Measured as what a process
# grows by with 20,000 to 130,000 answers of nine intents and four groups, half of them asked for again: 158 to 174.
OVERHEAD_BYTES = 170
# Of the store, for what was asked for again. Less forgets the head of the traffic for the sake of its tail, more holds
# on too long to what was the head yesterday.
PROTECTED_SHARE = 0.7


class SegmentedLru:
    """At most ``capacity`` values; drops first what was used once only, the least recently used before the others.

    Segmented LRU (Karedla, Love and Wherry 1994): a value that is used again moves to the protected segment, and from
    there back when others push it out, so that a stream of texts that nobody repeats can't wash out those that all do.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._once: LRUCache[bytes, bytes] = LRUCache(capacity)
        self._again: LRUCache[bytes, bytes] = LRUCache(max(1, int(capacity * PROTECTED_SHARE)))

    def __len__(self) -> int:
        return len(self._once) + len(self._again)

    def get(self, key: bytes) -> bytes | None:
        if (value := self._again.get(key)) is not None:
            return value
        if (value := self._once.pop(key, None)) is not None:
            if self._again.is_full():
                self._once.insert(*self._again.popitem())
            self._again.insert(key, value)
        return value

    def put(self, key: bytes, value: bytes) -> None:
        if key in self._again:
            self._again.insert(key, value)
            return
        if key not in self._once and len(self) >= self.capacity:
            (self._once or self._again).popitem()
        self._once.insert(key, value)


class Known(NamedTuple):
    """An answer of before; ``truncated`` says that its text had more tokens than the model sees."""

    ranked: Ranked
    truncated: bool


class AnswerCache:
    """Ranked answers by normalised text, in at most ``max_bytes`` of memory and for at most ``ttl_s`` seconds.

    ``model`` names all that an answer depends on beside its text: the same text under another name is another entry.
    ``intents`` and ``groups`` are the names that an answer is made of.
    """

    def __init__(
        self,
        *,
        max_bytes: int,
        ttl_s: float,
        model: str,
        intents: Sequence[str],
        groups: Sequence[str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ttl_s = ttl_s
        self._clock = clock
        self._hash = blake2b(digest_size=KEY_BYTES, key=blake2b(model.encode()).digest())
        self._names = [*intents, *groups]
        self._intents = {name: place for place, name in enumerate(intents)}
        self._groups = {name: place for place, name in enumerate(groups, len(intents))}
        # Until when it holds, whether its text was cut, then the place of each name and its confidence, ranked.
        self._packing = struct.Struct("<d?" + "Hd" * len(self._names))
        self.answer_bytes = OVERHEAD_BYTES + sys.getsizeof(bytes(self._packing.size))
        self._store = SegmentedLru(max(1, max_bytes // self.answer_bytes))

    def __repr__(self) -> str:
        return f"<AnswerCache {len(self)} of {self.capacity} answers, {self.answer_bytes} bytes each>"

    def __len__(self) -> int:
        """Answers that are kept, some of which may have expired."""
        return len(self._store)

    @property
    def capacity(self) -> int:
        return self._store.capacity

    def key(self, text: str) -> bytes:
        """What the answer to a text is filed under."""
        digest = self._hash.copy()
        digest.update(text.encode())
        return digest.digest()

    def get(self, text: str) -> Known | None:
        packed = self._store.get(self.key(text))
        if packed is None:
            return None
        expires_at, truncated, *rest = self._packing.unpack(packed)
        if expires_at <= self._clock():
            return None
        pairs = [(self._names[place], confidence) for place, confidence in zip(rest[::2], rest[1::2], strict=True)]
        return Known(Ranked(pairs[: len(self._intents)], pairs[len(self._intents) :]), truncated)

    def put(self, text: str, ranked: Ranked, *, truncated: bool) -> None:
        """Keep the model's answer, which ranks every intent and every group."""
        ranking: list[float] = []
        for places, pairs in ((self._intents, ranked.intents), (self._groups, ranked.groups)):
            for name, confidence in pairs:
                ranking += (places[name], confidence)
        expires_at = self._clock() + self._ttl_s
        self._store.put(self.key(text), self._packing.pack(expires_at, truncated, *ranking))
