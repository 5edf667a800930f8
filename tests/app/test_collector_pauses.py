"""Each stop of the garbage collector is told, with its generation and how long it took."""

from __future__ import annotations

import gc
import itertools
import threading
from collections.abc import Iterator

import pytest

from app.collector_pauses import collector_pauses


@pytest.fixture(autouse=True)
def no_collections_but_the_tests() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def test_each_collection_is_told_with_its_generation_and_seconds() -> None:
    """F22."""
    told: list[tuple[int, float]] = []
    ticks = itertools.count()
    with collector_pauses(
        lambda generation, seconds: told.append((generation, seconds)), clock=lambda: next(ticks) * 0.5
    ):
        for generation in (0, 2, 1):
            gc.collect(generation)

    assert told == [(0, 0.5), (2, 0.5), (1, 0.5)]


def test_so_is_one_that_another_thread_sets_off() -> None:
    told: list[int] = []
    with collector_pauses(lambda generation, _seconds: told.append(generation)):
        thread = threading.Thread(target=gc.collect)
        thread.start()
        thread.join()

    assert told == [2]


def test_before_and_after_nothing_is_told() -> None:
    told: list[int] = []
    before = list(gc.callbacks)
    gc.collect()
    with collector_pauses(lambda generation, _seconds: told.append(generation)):
        pass
    gc.collect()

    assert told == []
    assert gc.callbacks == before
