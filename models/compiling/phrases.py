"""Texts that carry a model's knowledge of words: its vocabulary, each word alone and in phrases of random words.

A student that sees only training queries knows only their words; its teacher knows a whole vocabulary from pretraining.
What the teacher says of random phrases passes that on (models/LOG.md says how much it is worth).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

# How the families of tokenizers mark that a token begins a word, and WordPiece that it doesn't.
_BEGINNINGS, _CONTINUATION = "Ġ▁", "##"
_LENGTHS = (1, 2, 2, 3, 3, 4, 5, 6)  # words of a phrase, each as likely: queries are short
# A vocabulary is in the order of frequency. Common words come more often, as in Zipf's law, but flatter, so that rare
# ones come at all; the offset keeps the commonest, which say nothing, from filling every phrase.
_EXPONENT, _OFFSET = 0.5, 50


def vocabulary(tokenizer: Path) -> list[str]:
    """The whole words that a tokenizer knows, in lower case and longer than a letter, common ones first."""
    loaded = Tokenizer.from_file(str(tokenizer))
    ranked = sorted(loaded.get_vocab().items(), key=lambda item: item[1])
    words = dict.fromkeys(token.lstrip(_BEGINNINGS) for token, _ in ranked if not token.startswith(_CONTINUATION))
    return [
        word
        for word in words
        if word.isalpha()
        and word == word.lower()
        and len(word) > 1
        # Of a vocabulary of pieces, what is a piece only.
        and len(loaded.encode(f" {word}", add_special_tokens=False).ids) == 1
    ]


def random_phrases(words: list[str], count: int, seed: int) -> list[str]:
    """``count`` phrases of ``words``, which are in the order of their frequency; one may come twice."""
    random = np.random.default_rng(seed)
    shares = (np.arange(len(words)) + _OFFSET) ** -_EXPONENT
    lengths = random.choice(_LENGTHS, count)
    drawn = iter(random.choice(words, int(lengths.sum()), p=shares / shares.sum()).tolist())
    return [" ".join(next(drawn) for _ in range(length)) for length in lengths]
