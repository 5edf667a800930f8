"""Latencies in a few numbers, out of an HDR histogram (https://hdrhistogram.org)."""

from __future__ import annotations

from typing import Any

import numpy as np

QUANTILES = {"p50": 50, "p90": 90, "p99": 99, "p99_9": 99.9, "max": 100}
LONGEST_US = 3_600_000_000
SIGNIFICANT_DIGITS = 3


def distribution(latencies_ms: np.ndarray[Any, Any]) -> dict[str, float | None]:
    """Percentiles in ms, true to three significant digits, and the count; None of nothing."""
    from hdrh.histogram import HdrHistogram  # of the extra `load`: the command line says so before it starts

    if not latencies_ms.size:
        return dict.fromkeys(QUANTILES) | {"count": 0}
    histogram = HdrHistogram(1, LONGEST_US, SIGNIFICANT_DIGITS)
    microseconds = np.clip(latencies_ms * 1e3, 0, LONGEST_US).astype(np.int64)
    for value, count in zip(*np.unique(microseconds, return_counts=True), strict=True):
        histogram.record_value(int(value), int(count))
    found = histogram.get_percentile_to_value_dict(list(QUANTILES.values()))
    return {name: round(found[at] / 1e3, 3) for name, at in QUANTILES.items()} | {"count": latencies_ms.size}
