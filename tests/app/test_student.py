"""The student's features are the same in every process for ever, and its logits a sum of their weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.student import (
    COUNT_SHARE,
    DAMPING,
    EDGE_SHARE,
    LARGEST_COUNT,
    LONGEST_WORD,
    PAIR_SHARE,
    PIECE_SHARE,
    WORD_SHARE,
    Features,
    Scorer,
    Student,
    features,
)
from app.text import normalise

BUCKETS = 1 << 16


def test_another_hash_or_another_kind_would_be_other_features() -> None:
    """Who has to change these numbers has to raise ``FEATURES``: students out there were taught with them."""
    found = features("usb c cable", BUCKETS)
    assert found.buckets[:8].tolist() == [23016, 57199, 50388, 46446, 46157, 36230, 48644, 19074]
    assert found.buckets[8:].tolist() == [
        61484, 39683, 58397, 234, 32868, 63523, 17845, 13491, 13330, 40632, 46539, 38551, 45051, 62082, 4474, 40392,
        35525, 19364, 38006,
    ]  # fmt: skip
    assert found.values.sum() == pytest.approx(13.717817)


def counts(text: str) -> list[float]:
    """What the features of each kind count together, in the order of the kinds."""
    return features(text, BUCKETS).values.tolist()


def test_a_query_is_its_words_pairs_edges_length_and_pieces() -> None:
    pieces = (4 - 2) + (4 - 3) + 0 + (5 - 2) + (5 - 3) + (5 - 4)  # of " ab " and " abc "
    assert counts("ab abc") == pytest.approx(
        [WORD_SHARE * 2**DAMPING] * 2
        + [PAIR_SHARE]
        + [EDGE_SHARE * 2**DAMPING] * 2
        + [COUNT_SHARE]
        + [PIECE_SHARE * pieces**DAMPING] * pieces
    )


def test_one_letter_has_no_pair_and_a_piece_of_its_edges() -> None:
    assert counts("a") == pytest.approx([WORD_SHARE, *[EDGE_SHARE * 2**DAMPING] * 2, COUNT_SHARE, PIECE_SHARE])


def test_a_word_is_the_same_feature_wherever_it_stands_and_a_pair_is_not() -> None:
    one, other = (set(features(text, BUCKETS).buckets.tolist()) for text in ("red shoes", "shoes red"))
    word = set(features("red", BUCKETS).buckets[:1].tolist())
    assert word <= one & other
    assert one != other


def test_lengths_past_the_largest_count_alike() -> None:
    words = [f"w{number}" for number in range(LARGEST_COUNT + 1)]
    texts = [" ".join(words[:count]) for count in (LARGEST_COUNT - 1, LARGEST_COUNT, LARGEST_COUNT + 1)]
    shorter, largest, longer = (features(text, BUCKETS) for text in texts)
    (count,) = _only(largest) & _only(longer)
    assert count not in _only(shorter)


def _only(found: Features) -> set[int]:
    """The buckets of what counts as much as the length."""
    return set(found.buckets[np.isclose(found.values, COUNT_SHARE)].tolist())


@given(st.text(min_size=1, max_size=300), st.integers(1, 1 << 17))
def test_any_visible_text_has_features_in_every_number_of_buckets(text: str, buckets: int) -> None:
    if not (visible := normalise(text, max_tokens=32)):
        return
    found = features(visible, buckets)
    assert len(found.buckets) == len(found.values) > 0
    assert 0 <= found.buckets.min() <= found.buckets.max() < buckets


def test_logits_are_the_sum_of_the_weights_of_the_features_scaled_and_shifted() -> None:
    chance = np.random.default_rng(3)
    weights = chance.integers(-127, 128, (512, 3)).astype(np.int8)
    scale, bias = (chance.normal(size=3).astype(np.float32) for _ in range(2))
    scorer = Scorer(Student(weights, scale, bias))
    for text in ("where is my parcel", "where", "is my parcel where it is", "parcel " * 20, "x" * (LONGEST_WORD + 1)):
        buckets, values = features(text, 512)
        expected = sum(value * weights[bucket].astype(float) for bucket, value in zip(buckets, values, strict=True))

        first, again = scorer.logits(text), scorer.logits(text)

        assert first.shape == (1, 3)
        assert first.dtype == np.float32
        assert first[0] == pytest.approx(expected * scale + bias, rel=1e-4)
        assert (first == again).all()  # whether its words were known or not
