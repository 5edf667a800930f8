"""The stages of a request: one vocabulary for metrics, headers, logs and the load tester."""

from __future__ import annotations

from typing import NamedTuple


class Stages(NamedTuple):
    """Seconds that a request spent in each stage; ``total`` is the server's own, the other three are a part of it."""

    tokenize: float = 0.0
    queue: float = 0.0
    inference: float = 0.0
    total: float = 0.0

    def server_timing(self) -> bytes:
        """The ``Server-Timing`` header (W3C), in milliseconds."""
        return b"tokenize;dur=%.3f, queue;dur=%.3f, inference;dur=%.3f, total;dur=%.3f" % tuple(
            seconds * 1e3 for seconds in self
        )
