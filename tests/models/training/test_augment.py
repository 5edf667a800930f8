"""Typos and prefixes change a query a little, never away from what it says."""

from __future__ import annotations

import random

import pytest

from models.training.augment import augment, prefix, typo

QUERIES = ("where is my order", "red running shoes for women", "a", "tv", "iphone 12 case", "order")


@pytest.mark.parametrize("text", QUERIES)
def test_a_prefix_keeps_most_of_the_text_and_its_first_word(text: str) -> None:
    for seed in range(50):
        cut = prefix(text, random.Random(seed))
        assert text.startswith(cut)
        assert len(cut) >= 0.6 * len(text) - 1
        assert cut.split()[0] == text.split()[0]


@pytest.mark.parametrize("text", QUERIES)
def test_a_typo_keeps_first_letters_and_short_words(text: str) -> None:
    for seed in range(50):
        changed = typo(text, random.Random(seed))
        assert changed
        assert abs(len(changed) - len(text)) <= 2
        assert changed[0] == text[0]
    assert typo("my tv 2000", random.Random(1)) == "my tv 2000"


def test_the_rate_is_the_share_of_changed_texts() -> None:
    chance = random.Random(3)
    assert all(augment("red running shoes", 0, chance) == "red running shoes" for _ in range(50))
    changed = sum(augment("red running shoes", 0.5, chance) != "red running shoes" for _ in range(1000))
    assert 400 < changed < 520


def test_the_same_chance_makes_the_same_texts() -> None:
    first, second = ([augment(text, 1, random.Random(5)) for text in QUERIES] for _ in range(2))
    assert first == second
