"""Queries as people type them: slips of the finger, and the beginnings that a search box sends with every key."""

from __future__ import annotations

import random

_NEIGHBOURS = {
    key: near
    for row in ("qwertyuiop", "asdfghjkl", "zxcvbnm")
    for key, near in zip(row, (row[max(0, i - 1) : i] + row[i + 1 : i + 2] for i in range(len(row))), strict=True)
}
# A shorter beginning says too little to keep its label ("re" of "return policy").
_SHORTEST_PREFIX = 0.6
_SHORTEST_TYPO_WORD = 4


def augment(text: str, rate: float, chance: random.Random) -> str:
    """``text``, or with probability ``rate`` a typo or a prefix of it, each half of the time."""
    if chance.random() >= rate:
        return text
    return typo(text, chance) if chance.random() < 0.5 else prefix(text, chance)


def typo(text: str, chance: random.Random) -> str:
    """One slip in one word: a letter dropped, doubled, swapped with the next or hit beside its key; or a lost space."""
    words = text.split()
    places = [place for place, word in enumerate(words) if len(word) >= _SHORTEST_TYPO_WORD and word.isalpha()]
    if not places:
        return text
    place = chance.choice(places)
    word = words[place]
    at = chance.randrange(1, len(word) - 1)  # the first letter is seldom wrong
    words[place] = chance.choice(
        (
            word[:at] + word[at + 1 :],
            word[: at + 1] + word[at:],
            word[:at] + word[at + 1] + word[at] + word[at + 2 :],
            word[:at] + chance.choice(_NEIGHBOURS.get(word[at], word[at])) + word[at + 1 :],
        )
    )
    if len(words) > 1 and chance.random() < 0.15:
        gap = chance.randrange(1, len(words))
        words[gap - 1 : gap + 1] = [words[gap - 1] + words[gap]]
    return " ".join(words)


def prefix(text: str, chance: random.Random) -> str:
    """The first 60 to 100 % of the characters, never less than one whole word."""
    words = text.split()
    shortest = max(len(words[0]), round(len(text) * _SHORTEST_PREFIX))
    return text[: chance.randint(min(shortest, len(text)), len(text))].rstrip()
