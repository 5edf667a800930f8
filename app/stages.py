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
        tokenize, queue, inference, total = self
        return b"tokenize;dur=%.3f, queue;dur=%.3f, inference;dur=%.3f, total;dur=%.3f" % (
            tokenize * 1e3,
            queue * 1e3,
            inference * 1e3,
            total * 1e3,
        )
