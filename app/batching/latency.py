"""How long a row of each bucket takes: measured at warm-up, followed while serving."""

from __future__ import annotations

from collections.abc import Mapping

# Weight of a new measurement: follows a neighbour that takes the cache away within some tens of rows.
SMOOTHING = 0.05
# A row that the scheduler put aside says nothing about the next one, so one measurement counts for this factor at most.
OUTLIER = 4.0


class LatencyTable:
    """Seconds that a row takes by bucket. Constants can't do: the same row takes five times as long without VNNI."""

    def __init__(self, seconds: Mapping[int, float]) -> None:
        if not seconds:
            raise ValueError("a latency table needs a bucket")
        self.buckets = tuple(sorted(seconds))
        self._seconds = dict(seconds)

    def __repr__(self) -> str:
        return f"<LatencyTable {', '.join(f'{b}: {s * 1e3:.2f} ms' for b, s in sorted(self._seconds.items()))}>"

    def __getitem__(self, bucket: int) -> float:
        return self._seconds[bucket]

    def observe(self, bucket: int, seconds: float) -> None:
        known = self._seconds[bucket]
        self._seconds[bucket] = known + SMOOTHING * (min(seconds, OUTLIER * known) - known)

    @property
    def tokens_per_second(self) -> float:
        """What one replica computes at most, in its most efficient bucket."""
        return max(bucket / max(seconds, 1e-6) for bucket, seconds in self._seconds.items())

    @property
    def most_efficient_bucket(self) -> int:
        return max(self.buckets, key=lambda bucket: bucket / max(self._seconds[bucket], 1e-6))

    def as_milliseconds(self) -> dict[int, float]:
        return {bucket: round(seconds * 1e3, 3) for bucket, seconds in sorted(self._seconds.items())}
