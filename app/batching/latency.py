"""How long a row of each bucket takes: measured at warm-up, followed while serving."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping

# Weight of a new measurement: follows a neighbour that takes the cache away within some tens of rows.
SMOOTHING = 0.05
# Weight of it for the other buckets: one that looked slow once is not used, so only its neighbours can clear its name.
SPILL = 0.01
# A row that the scheduler put aside says nothing about the next one, so one measurement counts for this factor at most.
OUTLIER = 4.0


class LatencyTable:
    """Seconds that a row takes by bucket. Constants can't do: the same row takes five times as long without VNNI."""

    def __init__(self, seconds: Mapping[int, float]) -> None:
        if not seconds:
            raise ValueError("a latency table needs a bucket")
        self.buckets = tuple(sorted(seconds))
        self._seconds = dict(seconds)
        self._at_warmup = dict(seconds)
        self._judge()

    def __repr__(self) -> str:
        return f"<LatencyTable {', '.join(f'{b}: {s * 1e3:.2f} ms' for b, s in sorted(self._seconds.items()))}>"

    def __getitem__(self, bucket: int) -> float:
        return self._seconds[bucket]

    def observe(self, bucket: int, seconds: float) -> None:
        """Follow a row's time: its own bucket closely, the others by the seconds that this one is off its warm-up.

        Seconds and not a ratio, since what rows pay after a pause is weights that have left the cache: the same for
        short ones and long ones.
        """
        seconds = min(seconds, OUTLIER * self._seconds[bucket])
        extra = seconds - self._at_warmup[bucket]
        for other, known in self._seconds.items():
            if other == bucket:
                self._seconds[other] = known + SMOOTHING * (seconds - known)
            else:
                self._seconds[other] = known + SPILL * (max(0.0, self._at_warmup[other] + extra) - known)
        self._judge()

    def bucket_for(self, tokens: int) -> int:
        """The smallest that covers so many, or the largest."""
        return self.buckets[min(bisect_left(self.buckets, tokens), len(self.buckets) - 1)]

    def _judge(self) -> None:
        """Find ``most_efficient_bucket``, and the ``tokens_per_second`` that one replica computes in full rows of it.

        Once a row, since admission asks for every query.
        """
        self.most_efficient_bucket = max(self.buckets, key=self._rate)
        self.tokens_per_second = self._rate(self.most_efficient_bucket)

    def _rate(self, bucket: int) -> float:
        return bucket / max(self._seconds[bucket], 1e-6)

    def as_milliseconds(self) -> dict[int, float]:
        return {bucket: round(seconds * 1e3, 3) for bucket, seconds in sorted(self._seconds.items())}
