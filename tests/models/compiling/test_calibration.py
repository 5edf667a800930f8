"""Calibration shows every label, every bucket, full rows and padded ones, the same for the same seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from app.packing import Embeddings
from models.compiling import calibration
from models.compiling.calibration import CalibrationError, calibration_rows, choose

LABELS = ["product", "media", "help"]
BUCKETS = [8, 16, 32]
EMBEDDINGS = Embeddings(np.ones((30, 4), np.float32), np.zeros((32, 4), np.float32))


def by_first_word(texts: Sequence[str]) -> np.ndarray[Any, np.dtype[np.float32]]:
    """A reference that is sure of the label that a text begins with."""
    return np.array([[float(text.startswith(label)) for label in LABELS] for text in texts], np.float32)


def texts(**counts: int) -> list[str]:
    return [f"{label} {number}" for label, count in counts.items() for number in range(count)]


def queries(count: int, longest: int) -> list[np.ndarray[Any, np.dtype[np.int64]]]:
    lengths = np.random.default_rng(1).integers(3, longest, count, endpoint=True)
    return [np.arange(length) for length in lengths.tolist()]


def test_every_label_is_taken_equally_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "QUERIES_PER_LABEL", 5)
    chosen = choose(texts(product=500, media=20, help=5), LABELS, by_first_word, seed=1)
    assert Counter(text.split()[0] for text in chosen) == {"product": 5, "media": 5, "help": 5}


def test_rare_label_is_taken_as_often_as_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "QUERIES_PER_LABEL", 5)
    chosen = choose(texts(product=500, media=20, help=1), LABELS, by_first_word, seed=1)
    assert Counter(text.split()[0] for text in chosen) == {"product": 5, "media": 5, "help": 1}


def test_no_more_texts_are_asked_than_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "QUERIES_PER_LABEL", 5)
    asked: list[int] = []

    def counted(some: Sequence[str]) -> np.ndarray[Any, np.dtype[np.float32]]:
        asked.append(len(some))
        return by_first_word(some)

    choose(texts(product=5000, media=5000, help=5000), LABELS, counted, seed=1)
    assert asked == [500]


def test_label_that_no_text_gets_is_named() -> None:
    with pytest.raises(CalibrationError, match="none of the 30 calibration queries the label media, help"):
        choose(texts(product=30), LABELS, by_first_word, seed=1)


def test_same_seed_chooses_and_packs_the_same() -> None:
    first, second, other = (
        choose(texts(product=300, media=300, help=300), LABELS, by_first_word, seed=seed) for seed in (1, 1, 2)
    )
    assert first == second != other
    one, two = (calibration_rows(queries(50, 20), EMBEDDINGS, buckets=BUCKETS, pooling="cls", seed=1) for _ in range(2))
    assert all(np.array_equal(left.mask, right.mask) for left, right in zip(one, two, strict=True))


def test_rows_hold_every_query_once_in_every_bucket_full_and_padded() -> None:
    rows = calibration_rows(queries(400, 20), EMBEDDINGS, buckets=BUCKETS, pooling="cls", seed=1)
    assert sum(row.pool.sum() for row in rows) == 400
    assert {row.tokens for row in rows} == set(BUCKETS)
    padding = [row.tokens - int(row.hidden[0].any(axis=1).sum()) for row in rows]
    assert min(padding) == 0
    assert sum(count > 0 for count in padding) > len(rows) / 2


def test_query_as_long_as_the_largest_bucket_fits() -> None:
    rows = calibration_rows([np.arange(16)] * 3, EMBEDDINGS, buckets=[8, 16], pooling="cls", seed=1)
    assert [row.tokens for row in rows] == [16, 16, 16]
