"""How long a row takes: as stated, or as a bundle's target was measured on this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

# What a row holds where only its time is stated.
ROW_TOKENS = 64


@dataclass(frozen=True, slots=True)
class RowTimes:
    """``warm_s`` is what the service's table starts with: seconds by bucket, as measured at warm-up.

    ``observed_s`` holds what rows took by the pause before them, in seconds, and bucket: a replica that idled finds its
    weights gone from the cache, and one that did not shares the memory with its neighbours. Empty where rows always
    take what the table says. Queries are cut to ``max_tokens``.
    """

    warm_s: Mapping[int, float]
    observed_s: Mapping[float, Mapping[int, Sequence[float]]]
    max_tokens: int
    one_query_a_row: bool = False

    @classmethod
    def stated(cls, text: str) -> RowTimes:
        """Of milliseconds: "3" (every row, of up to ``ROW_TOKENS`` tokens) or "8:1.3,16:1.9,32:2.9" by bucket.

        Raises ``ValueError`` that says what is wrong.
        """
        seconds: dict[int, float] = {}
        for part in text.split(","):
            bucket, _, milliseconds = part.rpartition(":")
            try:
                tokens, row_s = int(bucket or ROW_TOKENS), float(milliseconds) / 1e3
            except ValueError:
                raise ValueError(f"{part!r} is neither milliseconds nor TOKENS:MILLISECONDS") from None
            if tokens < 3 or not 0 < row_s < 10:
                raise ValueError(f"{part!r}: a row holds at least 3 tokens and takes over 0 and under 10,000 ms")
            if tokens in seconds:
                raise ValueError(f"{part!r}: there is a time for {tokens} tokens already")
            seconds[tokens] = row_s
        return cls(seconds, {}, max(seconds))

    def draw(self, bucket: int, pause_s: float, rng: Random) -> float:
        """Seconds of one row on a replica that has been idle for ``pause_s``."""
        known = [pause for pause in self.observed_s if pause <= pause_s]
        if not known:
            return self.warm_s[bucket]
        observed_s = self.observed_s[max(known)]
        # A bucket that was not observed is off its warm-up by as many seconds as the longest that was.
        like = bucket if bucket in observed_s else max(observed_s)
        return max(0.0, self.warm_s[bucket] + rng.choice(observed_s[like]) - self.warm_s[like])
