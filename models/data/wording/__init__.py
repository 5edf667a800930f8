"""Queries in our own words: what the public data lacks.

Three uses. *Carriers* put one and the same beginning before different intents, so that a beginning tells nothing.
*Templates* say what shops hear and the sources do not: product questions, returns and exchanges, payment by instalment,
late parcels. *Hard negatives* share the words of another label ("return address labels", "order of operations").
All are written from what shops generally sell and hear. The topics were chosen knowing which *labels* the held-out
chatbots have (warranty, side effects, instalments); no query is copied from them,
    and ``prepare`` drops any that coincides.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from models.data.wording.slots import SLOTS
from models.data.wording.templates import TEMPLATES

_OPTION = re.compile(r"\[([^\[\]]*)\]")
_SLOT = re.compile(r"\{(\w+)\}")


class Phrase(NamedTuple):
    label: str
    text: str


# The same beginnings before any content: keywords of every group are turned into sentences with these.
CARRIERS = (
    "i am looking for",
    "i want",
    "i need",
    "show me",
    "do you have",
    "can you find me",
    "where can i find",
    "please find",
    "i would like to find",
    "tell me about",
    "looking for",
    "can i get",
    "find",
)


def phrases(label: str, count: int, fillers: Mapping[str, Sequence[str]], chance: random.Random) -> Iterator[Phrase]:
    """``count`` queries of ``label``, every template used about equally often; repeats are left to the caller.

    ``fillers`` gives the values of the slots that come from training sources (title, artist, author, product).
    """
    values = {**SLOTS, **fillers}
    templates = TEMPLATES[label]
    for index in range(count):
        yield Phrase(label, _fill(templates[index % len(templates)], values, chance))


def _fill(template: str, values: Mapping[str, Sequence[str]], chance: random.Random) -> str:
    def slot(match: re.Match[str]) -> str:
        if match[1] == "number":
            return str(chance.randrange(10, 10 ** chance.randint(2, 9)))
        return chance.choice(values[match[1]])

    text = _OPTION.sub(lambda match: chance.choice(match[1].split("|")), template)
    return " ".join(_SLOT.sub(slot, text).split())
