"""Agreement counts labels that changed, says by how much the reference preferred its own, and hides nothing in NaN."""

from __future__ import annotations

import numpy as np
import pytest

from models.compiling.agreement import agreement, largest_difference

QUERIES = ["lamp", "song", "refund", "desk"]
LABELS = ["product", "media", "help"]
REFERENCE = np.array([[0.8, 0.1, 0.1], [0.3, 0.6, 0.1], [0.0, 0.0, 1.0], [0.5, 0.4, 0.1]], np.float32)


def test_equal_answers_agree_wholly() -> None:
    found = agreement(QUERIES, LABELS, REFERENCE, REFERENCE.copy())
    assert (found.queries, found.labels, found.largest, found.mean, found.disagreements) == (4, 1.0, 0.0, 0.0, [])


def test_changed_labels_are_listed_with_both_answers_widest_margin_first() -> None:
    target = REFERENCE.copy()
    target[3] = [0.4, 0.5, 0.1]
    target[1] = [0.6, 0.3, 0.1]
    found = agreement(QUERIES, LABELS, REFERENCE, target)
    assert found.labels == 0.5
    assert [item[:3] for item in found.disagreements] == [("song", "media", "product"), ("desk", "product", "media")]
    assert [item.margin for item in found.disagreements] == pytest.approx([0.3, 0.1])
    assert found.largest == pytest.approx(0.3)
    assert found.mean == pytest.approx(0.8 / 12)


def test_moved_probability_without_a_changed_label_is_no_disagreement() -> None:
    target = REFERENCE.copy()
    target[0] = [0.5, 0.4, 0.1]
    found = agreement(QUERIES, LABELS, REFERENCE, target)
    assert (found.labels, found.disagreements) == (1.0, [])
    assert found.largest == pytest.approx(0.3)


def test_nan_counts_as_the_furthest_that_a_probability_can_be() -> None:
    target = REFERENCE.copy()
    target[0] = np.nan
    assert largest_difference(REFERENCE, target) == 1
