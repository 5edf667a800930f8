"""Our own queries cover every label and fill every slot, the same ones for the same seed."""

from __future__ import annotations

import random
import re

import pytest

from app.text import normalise
from models.data.wording import phrases
from models.data.wording.slots import SLOTS
from models.data.wording.templates import TEMPLATES
from models.labels import LABELS

FILLERS = {"title": ["dune"], "artist": ["abba"], "author": ["mary shelley"], "product": ["dell xps 13"]}


def test_every_label_has_templates() -> None:
    assert list(TEMPLATES) == [label.name for label in LABELS]


@pytest.mark.parametrize("label", TEMPLATES)
def test_templates_use_known_slots_and_close_their_brackets(label: str) -> None:
    for template in TEMPLATES[label]:
        assert set(re.findall(r"\{(\w+)\}", template)) <= {*SLOTS, *FILLERS, "number"}, template
        assert template.count("[") == template.count("]"), template


@pytest.mark.parametrize("label", TEMPLATES)
def test_queries_are_filled_normal_and_many(label: str) -> None:
    texts = [phrase.text for phrase in phrases(label, 300, FILLERS, random.Random(1))]
    assert not re.search(r"[\[\]{}|]", " ".join(texts))
    assert texts == [normalise(text, max_tokens=32) for text in texts]
    assert len(set(texts)) > 150
    assert texts == [phrase.text for phrase in phrases(label, 300, FILLERS, random.Random(1))]
