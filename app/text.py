"""Normalisation: the one form of a query that training and serving both see.

A model learns *style* instead of content when capitals and question marks tell the sources of its training data apart,
so both are removed before anything else looks at the text. Change the rules and you change the model: raise
``NORMALISER_VERSION``, and bundles made with the older rules are refused at load.
"""

from __future__ import annotations

import re
import unicodedata

NORMALISER_VERSION = 1

# A word piece rarely spans more than a few characters, so text past this many characters a token can't matter; the cut
# keeps a megabyte of "a" from reaching the tokenizer.
MAX_CHARS_PER_TOKEN = 8

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
# C0, C1 and the invisible format characters (zero-width joiners, direction marks, the byte-order mark).
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]"
)

# What phones type instead of the straight quote.
_STRAIGHT_QUOTES = str.maketrans("‘’‛“”‟", "'''\"\"\"")
# Punctuation by Unicode's book, yet part of a word or an amount: "c#", "50%", "h&m".
_MEANINGFUL_PUNCTUATION = frozenset("#%&@")


def replace_lone_surrogates(text: str) -> str:
    """Half a surrogate pair is no character: JSON can carry it, UTF-8 and the tokenizer can't."""
    return text if text.isascii() else _LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)


def normalise(text: str, *, max_tokens: int) -> str:
    """The form of ``text`` that the model sees: NFKC, lower case, single spaces, no outer punctuation; digits stay.

    ``max_tokens`` bounds the work: only the first ``8 * max_tokens`` characters are looked at. A query of nothing but
    punctuation keeps it ("???"); the result is empty only where nothing visible was sent.
    """
    text = text[: max_tokens * MAX_CHARS_PER_TOKEN]
    if not text.isprintable() or not text.isascii():  # else it is plain, as most are
        # Before all else: what can't be seen may stand between a letter and the accent that NFKC joins to it.
        text = _INVISIBLE.sub("", text)
    if not text.isascii():
        text = unicodedata.normalize("NFKC", replace_lone_surrogates(text)).translate(_STRAIGHT_QUOTES)
        text = text[: max_tokens * MAX_CHARS_PER_TOKEN]  # again: one character may have become eighteen
    text = " ".join(text.lower().split())
    start, end = 0, len(text)
    while start < end and _is_outer(text[start]):
        start += 1
    while end > start and _is_outer(text[end - 1]):
        end -= 1
    return text[start:end] or text


def is_cut(text: str, *, max_tokens: int) -> bool:
    """Whether ``normalise`` leaves the end of this text out."""
    return len(text) > max_tokens * MAX_CHARS_PER_TOKEN


def _is_outer(character: str) -> bool:
    """Whether this character says nothing at the edge of a query: punctuation and spaces, but not symbols such as $."""
    if character.isalnum() or character in _MEANINGFUL_PUNCTUATION:
        return False
    return character == " " or unicodedata.category(character).startswith("P")
