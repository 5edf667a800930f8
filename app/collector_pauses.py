"""How long Python's garbage collector stops the process: every thread waits for it, and so does every query."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Told the generation that was collected (0, 1, 2) and the seconds that took, in whichever thread set it off.
OnPause = Callable[[int, float], None]


@contextmanager
def collector_pauses(on_pause: OnPause, *, clock: Callable[[], float] = time.perf_counter) -> Iterator[None]:
    """Tell ``on_pause`` of each collection meanwhile. Collections never overlap, and nor do these calls."""
    started_at: float | None = None

    def callback(phase: str, info: dict[str, int]) -> None:
        nonlocal started_at
        if phase == "start":
            started_at = clock()
        elif started_at is not None:
            on_pause(info["generation"], clock() - started_at)

    gc.callbacks.append(callback)
    try:
        yield
    finally:
        gc.callbacks.remove(callback)
