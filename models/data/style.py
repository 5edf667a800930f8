"""How a query is said, as opposed to what it says: sentence or keywords, carrier phrases, the family of a text.

A carrier is the part of a sentence that carries no intent of its own ("i am looking for a …", "can you help me to …").
Cutting it turns a sentence into keywords, so that each group can be shown in both styles.
"""

from __future__ import annotations

import re
from typing import Literal

Style = Literal["keyword", "sentence"]

_QUESTION = "who|whom|whose|what|whats|what's|when|where|where's|why|which|how|how's"
_AUXILIARY = (
    "is|are|was|were|do|does|did|don't|dont|can|can't|cant|could|will|would|wouldn't|should|may|might|has|have|am|shall"
)
_PERSON = r"i|i'm|im|i'd|id|i've|ive|we|we're|you|u|ya|your|ur|my|me|our|us"
_REQUEST = (
    "show|find|tell|give|help|play|please|pls|let|let's|lets|search|get|need|want|wanna|looking|hi|hello|hey|"
    "put|go|take"
)
_SENTENCE = re.compile(rf"^(?:{_QUESTION}|{_AUXILIARY}|{_REQUEST})\b|(?<![\w'])(?:{_PERSON})(?![\w'])")

_QUESTION_WORD = re.compile(
    rf"^(?:in |on |at |for |by |from |to )?(?:{_QUESTION})(?: (?:many|much|long|old|far|often|kind of|type of))?"
    rf"(?: (?:{_AUXILIARY}|had))?(?: (?:you|we|i))?(?: (?:the|a|an|it|there))? "
)

_HELP_WORD = r"(?:help|assistance|support|information|info|questions?|problems?|issues?|troubles?)"
_CARRIERS = tuple(
    re.compile(rf"^(?:{pattern})(?: |$)")
    for pattern in (
        r"(?:hi|hello|hey|ok|please|pls|yes|no|sir|so)",
        # i am looking for, im searching for, i would like to buy, i want to find, i am interested in buying
        r"(?:i am|i'm|im|i was|we are|we're) (?:looking|searching|locking|shopping|hunting)(?: for| to)?",
        r"(?:i am|i'm|im) (?:interested in|in need of|trying to|calling to|waiting for|having)",
        r"(?:looking|searching) (?:for|to)",
        r"(?:i|we)(?: would|'d|d)? (?:really )?"
        r"(?:like|love|need|want|wanna|try|have got|have|got|expect|call|wish)(?: to)?",
        r"(?:i'd|id|i'll) (?:like|love|need)(?: to)?",
        r"(?:i|we) (?:do not|don't|dont|cannot|can't|cant|can no longer|can) (?:know|find|see|afford)?"
        r"(?: (?:how|what|where))?(?: (?:i|to|do|can|have|need))*",
        r"(?:need|want|wanna|have|got|would like)(?: to)?",
        rf"(?:some )?{_HELP_WORD}(?: me)?(?: (?:to|with|about|of|on|in|for))?",
        r"(?:can|could|will|would|may) (?:you|u|ya|i|we|anyone|somebody)(?: please)?(?: be able to)?",
        r"(?:help|show|tell|give|find|get|direct|assist)(?: me| us)(?: to| with| about)?",
        r"(?:is it possible|is there a way|are you able|would it be possible|do i have|do you have|ya have|is there)"
        r"(?: to)?",
        r"(?:how|where|what|when)(?: (?:do|can|could|should|would|will|must|did|does|have|need|is|are))?"
        r"(?: (?:i|we|you|u|one))?(?: (?:have|need|do|got))*(?: to)?",
        r"(?:to|for|about|with|in order to|how to) "
        r"(?:find|buy|get|purchase|see|know|check|learn|view|order|have|shop for)?",
        r"(?:buy|find|get|purchase|see|view|shop for|buying|finding|getting|seeing|know|have)",
        r"(?:more )?(?:a|an|the|some|any|my|your|ur|one)",
        r"(?:pair|set|pack|box)s? of",
    )
)

# Words that decide neither what a text is about nor which template made it.
_EMPTY_WORDS = frozenset(f"{_QUESTION}|{_AUXILIARY}|{_PERSON}|{_REQUEST}".split("|")) | frozenset(
    [
        "a",
        "an",
        "the",
        "of",
        "for",
        "to",
        "in",
        "on",
        "at",
        "by",
        "with",
        "and",
        "or",
        "that",
        "this",
        "these",
        "those",
        "it",
        "its",
        "it's",
        "some",
        "any",
        "from",
        "as",
        "be",
        "been",
        "am",
        "into",
        "than",
        "then",
        "not",
        "no",
        "more",
        "about",
        "help",
        "assistance",
        "information",
        "like",
        "would",
        "looking",
        "searching",
        "trying",
        "got",
        "new",
        "know",
        "s",
        "t",
        "d",
        "m",
        "ll",
        "ve",
        "re",
    ]
)
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_DIGITS = re.compile(r"\d+")


def style_of(text: str) -> Style:
    """``sentence`` when a normalised text asks, commands or speaks of a person; else ``keyword``."""
    return "sentence" if _SENTENCE.search(text) else "keyword"


def cut_carrier(text: str) -> str:
    """The normalised text without the carrier phrases it begins with; the text itself when nothing would be left."""
    rest = text
    while True:
        shorter = rest
        for carrier in _CARRIERS:
            shorter = carrier.sub("", shorter, count=1).lstrip(" ,.;:!?-")
        if not shorter:
            return text
        if shorter == rest:
            break
        rest = shorter
    # ", can you help me", ", i need assistance": the same carriers at the end of a sentence.
    rest = re.sub(
        rf",? (?:(?:can|could|will) (?:you|u|ya) (?:please )?help(?: me)?|help me|i need (?:some )?{_HELP_WORD})$",
        "",
        rest,
    )
    return rest.strip(" ,.;:!?-") or text


def cut_question(text: str) -> str:
    """The normalised question without its question word: "who played jason in …" → "played jason in …"."""
    return _QUESTION_WORD.sub("", text, count=1) or text


def family_of(text: str) -> str:
    """The unit that a split keeps together: what is left when style, word order, plurals and numbers are taken away.

    Two texts of one template or one entity get the same family, so that no validation row is a training row said
    again.
    """
    words = (_DIGITS.sub("#", word) for word in _WORD.findall(text))
    content = {_stem(word) for word in words if word not in _EMPTY_WORDS}
    return " ".join(sorted(content)) or text


def _stem(word: str) -> str:
    # Enough to join "orders" with "order" and "tracking" with "track"; not a linguist's stemmer.
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word
