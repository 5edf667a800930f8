"""Texts that have none of the labels, so that a model learns to be unsure: other languages, and keys hit at random.

Foreign texts are words of a language drawn at random, from Faker's lists of common words. They aren't sentences, and
needn't be: the point is that unknown words are no evidence for any label. Words that English queries have as well are
left out, since "film" and "hotel" do say something.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator

from models.data.sources.example import Example, clean
from models.data.style import style_of
from models.labels import OUTSIDE_LABEL

# Swedish, Portuguese, Turkish, Hungarian, Finnish, Korean and others are left for the test in other languages.
LOCALES = (
    "ar_AA", "az_AZ", "bn_BD", "cs_CZ", "da_DK", "de_DE", "el_GR", "es_ES", "fa_IR", "fil_PH", "fr_FR", "hy_AM",
    "it_IT", "ja_JP", "mk_MK", "nl_BE", "pl_PL", "ru_RU", "th_TH", "uk_UA", "vi_VN", "zh_CN",
)  # fmt: skip
_WITHOUT_SPACES = frozenset(("ja_JP", "th_TH", "zh_CN"))
TEXTS_A_LOCALE = 110
RANDOM_KEYS = 400
_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")


def outside_examples(english: Collection[str], seed: int) -> Iterator[Example]:
    """The examples; ``english`` are the words of the labelled texts."""
    for text, source in (*_foreign(english, seed), *_random_keys(random.Random(f"{seed}:keys"))):
        yield Example(clean(text), OUTSIDE_LABEL, source, style_of(text), clean(text))


def _foreign(english: Collection[str], seed: int) -> Iterator[tuple[str, str]]:
    from faker import Faker

    for locale in LOCALES:
        chance = random.Random(f"{seed}:{locale}")
        words = [word for word in map(clean, Faker(locale).get_words_list()) if word and word not in english]
        for _ in range(TEXTS_A_LOCALE):
            chosen = chance.choices(words, k=chance.choice((1, 2, 2, 3, 3, 4, 5, 7)))
            yield ("" if locale in _WITHOUT_SPACES else " ").join(chosen), "foreign_words"


def _random_keys(chance: random.Random) -> Iterator[tuple[str, str]]:
    """ "asdf", "jkljkl", "xqzv 3f": what cats type."""
    for _ in range(RANDOM_KEYS):
        row = chance.choice(_ROWS)
        at = chance.randrange(len(row) - 3)
        neighbours = row[at : at + chance.randint(3, 6)] * chance.choice((1, 1, 2))
        letters = "".join(chance.choices("".join(_ROWS) + "0123456789", k=chance.randint(4, 9)))
        yield (
            chance.choice((neighbours, letters, f"{neighbours} {letters}", f"{letters} {letters[::-1]}")),
            "random_keys",
        )
