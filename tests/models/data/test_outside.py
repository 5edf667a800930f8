"""Texts that have none of the labels: other languages and random keys."""

from __future__ import annotations

import pytest

pytest.importorskip("faker", reason="preparing needs faker")

from app.text import normalise
from models.data.outside import LOCALES, RANDOM_KEYS, TEXTS_A_LOCALE, outside_examples
from models.labels import OUTSIDE_LABEL

ENGLISH = {"hotel", "film", "partner", "die"}


def test_every_language_gives_as_many_texts_and_none_with_a_word_that_english_has() -> None:
    found = list(outside_examples(ENGLISH, 17))
    foreign = [example for example in found if example.source == "foreign_words"]
    assert len(foreign) == len(LOCALES) * TEXTS_A_LOCALE
    assert not {word for example in foreign for word in example.text.split()} & ENGLISH
    assert len(found) == len(foreign) + RANDOM_KEYS


def test_they_are_outside_every_label_normal_and_the_same_for_the_same_seed() -> None:
    found = list(outside_examples(ENGLISH, 17))
    assert {example.label for example in found} == {OUTSIDE_LABEL}
    assert all(example.text and example.text == normalise(example.text, max_tokens=32) for example in found)
    assert found == list(outside_examples(ENGLISH, 17))
    assert found != list(outside_examples(ENGLISH, 18))
