"""The books: every request that was sent has exactly one ending, and the run a verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.soak.judging import FAULTS, Ending
from benchmarks.soak.memory import Sample, slope_mb_per_min
from benchmarks.soak.mix import Asked

MAX_SLOPE_MB_PER_MIN = 1.0
# A service that refuses everybody crosses nothing: at the share of its rate that a soak runs at, most must be answered.
MIN_ANSWERED = 0.9
MAX_EXAMPLES = 20


class Slice(NamedTuple):
    """Some seconds of the run; latency is that of patient queries that were answered, from the intended send, in ms."""

    seconds: float  # from the start to its end
    sent: int
    answered: int
    refused: int
    p50_ms: float | None
    p99_ms: float | None


class Ledger:
    def __init__(self) -> None:
        self.sent = 0
        self.endings: Counter[tuple[str, Ending]] = Counter()
        self.slices: list[Slice] = []
        self.examples: list[dict[str, str]] = []  # of faults: kind, ending, request and reply, clipped
        self._latencies_ms: list[float] = []
        self._before: Counter[str] = Counter()

    def count_sent(self) -> None:
        self.sent += 1

    def record(self, asked: Asked, ending: Ending, *, now_ns: int, reply: bytes = b"") -> None:
        self.endings[asked.kind, ending] += 1
        if ending is Ending.RIGHT and asked.kind == "patient":
            self._latencies_ms.append((now_ns - asked.intended_ns) / 1e6)
        if ending in FAULTS and len(self.examples) < MAX_EXAMPLES:
            self.examples.append(
                {"kind": asked.kind, "ending": ending.value, "request": _clip(asked.data), "reply": _clip(reply)}
            )

    def close_slice(self, seconds: float) -> Slice:
        now = Counter(sent=self.sent, answered=self.total(Ending.RIGHT), refused=self.total(Ending.REFUSED))
        p50, p99 = np.percentile(self._latencies_ms, [50, 99]).round(3).tolist() if self._latencies_ms else (None, None)
        counts = {name: now[name] - self._before[name] for name in now}
        self.slices.append(Slice(seconds, **counts, p50_ms=p50, p99_ms=p99))
        self._before, self._latencies_ms = now, []
        return self.slices[-1]

    def total(self, ending: Ending) -> int:
        return sum(count for (_, each), count in self.endings.items() if each is ending)

    def by_kind(self) -> dict[str, dict[str, int]]:
        kinds = sorted({kind for kind, _ in self.endings})
        return {kind: {e.value: self.endings[kind, e] for e in Ending if self.endings[kind, e]} for kind in kinds}

    @property
    def answered_share(self) -> float:
        """Of the patient queries, how many were answered by somebody."""
        counts = {ending: self.endings["patient", ending] for ending in Ending}
        return (counts[Ending.RIGHT] + counts[Ending.FALLBACK]) / max(1, sum(counts.values()))


def verdict(ledger: Ledger, memory: Sequence[Sample], errors: Sequence[Mapping[str, Any]]) -> list[str]:
    """What is wrong with the run, a sentence each; nothing where it passed."""
    wrong = [f"{ledger.total(fault)} requests are {fault.value}" for fault in FAULTS if ledger.total(fault)]
    if (ended := sum(ledger.endings.values())) != ledger.sent:
        wrong.append(f"{ledger.sent} requests were sent and {ended} ended")
    if ledger.answered_share < MIN_ANSWERED:
        wrong.append(f"{ledger.answered_share:.1%} of the patient queries were answered, less than {MIN_ANSWERED:.0%}")
    slope = slope_mb_per_min(memory)
    if slope is None:
        wrong.append("there are too few samples of memory for a slope")
    elif slope >= MAX_SLOPE_MB_PER_MIN:
        wrong.append(f"memory grows by {slope:.2f} MB/min, the limit is {MAX_SLOPE_MB_PER_MIN:g}")
    if errors:
        wrong.append(f"{len(errors)} errors were logged that no kill explains, the first: {errors[0]['message']}")
    return wrong


def _clip(data: bytes) -> str:
    return data[-300:].decode("utf-8", "replace")
