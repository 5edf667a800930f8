"""Logits to ranked intents and groups."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.bundle import Label
from app.ranking import Ranked, Ranker, Thresholds

LABELS = [
    Label(name="product", definition="", group="product"),
    Label(name="tracking", definition="", group="help"),
    Label(name="media", definition="", group="media"),
    Label(name="returns", definition="", group="help"),
    Label(name="contact", definition="", group="help"),
]


def logits_of(*probabilities: float) -> np.ndarray:
    return np.log(np.array([probabilities], np.float32))


def test_intents_and_groups_come_most_confident_first() -> None:
    (ranked,) = Ranker(LABELS, temperature=1.0).rank(logits_of(0.1, 0.2, 0.5, 0.15, 0.05))
    assert ranked.intents == [
        ("media", 0.5),
        ("tracking", 0.2),
        ("returns", 0.15),
        ("product", 0.1),
        ("contact", 0.05),
    ]
    assert ranked.groups == [("media", 0.5), ("help", 0.4), ("product", 0.1)]


def test_the_group_of_the_top_intent_may_be_outweighed() -> None:
    (ranked,) = Ranker(LABELS, temperature=1.0).rank(logits_of(0.4, 0.2, 0.0001, 0.1999, 0.2))
    assert ranked.intents[0][0] == "product"
    assert ranked.groups[0] == ("help", pytest.approx(0.6, abs=1e-4))


def test_each_query_of_a_row_is_ranked_by_itself() -> None:
    both = np.concatenate([logits_of(0.6, 0.1, 0.1, 0.1, 0.1), logits_of(0.1, 0.1, 0.6, 0.1, 0.1)])
    assert [ranked.intents[0][0] for ranked in Ranker(LABELS, temperature=1.0).rank(both)] == ["product", "media"]


def test_no_query_makes_no_answer() -> None:
    assert Ranker(LABELS, temperature=1.0).rank(np.zeros((0, 5), np.float32)) == []


def test_ties_are_in_the_order_of_the_labels() -> None:
    (ranked,) = Ranker(LABELS, temperature=1.0).rank(np.zeros((1, 5), np.float32))
    assert [name for name, _ in ranked.intents] == ["product", "tracking", "media", "returns", "contact"]
    assert [name for name, _ in ranked.groups] == ["help", "product", "media"]


def test_so_are_they_among_many_labels() -> None:
    labels = [Label(name=f"label{n}", definition="", group=f"group{n}") for n in range(100)]
    (ranked,) = Ranker(labels, temperature=1.0).rank(np.arange(100, dtype=np.float32)[None] % 2)
    assert [name for name, _ in ranked.intents] == [f"label{n}" for n in (*range(1, 100, 2), *range(0, 100, 2))]


def test_a_temperature_softens_without_changing_the_order() -> None:
    logits = logits_of(0.7, 0.2, 0.05, 0.03, 0.02)
    (sharp,), (soft,) = Ranker(LABELS, temperature=1.0).rank(logits), Ranker(LABELS, temperature=2.0).rank(logits)
    assert sharp.intents[0][1] > soft.intents[0][1] > 0.2
    assert [name for name, _ in sharp.intents] == [name for name, _ in soft.intents]


def test_a_temperature_divides_the_logits() -> None:
    logits = np.array([[2.0, 0.0, -1.0, 1.0, 0.5]], np.float32)
    halved = Ranker(LABELS, temperature=1.0).probabilities(logits / 2)
    np.testing.assert_array_equal(Ranker(LABELS, temperature=2.0).probabilities(logits), halved)


def test_confidences_have_six_digits() -> None:
    (ranked,) = Ranker(LABELS, temperature=1.0).rank(logits_of(1 / 3, 1 / 3, 1 / 9, 1 / 9, 1 / 9))
    assert ranked.intents[0] == ("product", 0.333333)


def test_huge_logits_do_not_overflow() -> None:
    (ranked,) = Ranker(LABELS, temperature=0.01).rank(np.array([[3e4, -3e4, 0, 0, 0]], np.float32))
    assert ranked.intents[0] == ("product", 1.0)


@given(st.lists(st.floats(-50, 50, width=32), min_size=5, max_size=5), st.floats(0.25, 4.0))
def test_confidences_are_probabilities(logits: list[float], temperature: float) -> None:
    (ranked,) = Ranker(LABELS, temperature=temperature).rank(np.array([logits], np.float32))
    for pairs in ranked:
        confidences = [confidence for _, confidence in pairs]
        assert sum(confidences) == pytest.approx(1.0, abs=1e-5)
        assert confidences == sorted(confidences, reverse=True)
        assert all(0 <= confidence <= 1 for confidence in confidences)


@pytest.mark.parametrize(
    ("intent", "group", "reached"),
    [
        (("tracking", 0.5), ("help", 0.9), True),
        (("tracking", 0.49), ("help", 0.9), False),
        (("tracking", 0.5), ("help", 0.89), False),
        (("tracking", 0.6), ("media", 0.4), True),  # which has no threshold
        (("media", 0.9), ("help", 0.5), False),  # what is asked of the group that is largest
    ],
)
def test_an_answer_must_reach_the_threshold_of_its_intent_and_of_its_group(
    intent: tuple[str, float], group: tuple[str, float], reached: bool
) -> None:
    thresholds = Thresholds(0.5, {"help": 0.9})
    assert thresholds.are_reached(Ranked([intent], [group, ("product", 0.1)])) is reached
