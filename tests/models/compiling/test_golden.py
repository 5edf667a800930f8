"""Golden queries chosen from held-out ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from models.compiling.golden import choose_golden
from models.compiling.order import CompileError

ANSWERS = {
    "lamp": [0.8, 0.1, 0.1],
    "desk": [0.9, 0.05, 0.05],
    "song": [0.2, 0.7, 0.1],
    "maybe": [0.4, 0.35, 0.25],
}


def answer(texts: Sequence[str]) -> np.ndarray:
    return np.array([ANSWERS[text] for text in texts], np.float32)


def test_each_label_that_is_answered_gives_its_surest_query_the_surest_first() -> None:
    assert choose_golden(list(ANSWERS), answer, lambda _: True) == ["desk", "song"]  # none gets the third label


def test_of_many_labels_the_surest_twenty_are_kept() -> None:
    def many(texts: Sequence[str]) -> np.ndarray:
        return np.eye(40, dtype=np.float32) * 0.5 + np.diag(np.linspace(0, 0.4, 40, dtype=np.float32))

    texts = [f"query {number}" for number in range(40)]
    assert choose_golden(texts, many, lambda _: True) == [f"query {number}" for number in range(39, 19, -1)]


def test_one_of_them_fits_the_smallest_bucket() -> None:
    assert choose_golden(list(ANSWERS), answer, lambda text: text == "lamp") == ["desk", "song", "lamp"]
    with pytest.raises(CompileError, match="no held-out query fits the smallest bucket"):
        choose_golden(list(ANSWERS), answer, lambda _: False)
