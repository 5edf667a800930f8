"""Text to token ids, by the tokenizer that the bundle brings, which is asked once for each word.

Its encoding of a whole query takes 20 to 50 µs, most of what happens before the queue; shoppers type few different
words, and a word of a BERT vocabulary is cut into the same pieces whatever stands beside it.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from cachebox import LRUCache
from numpy.typing import NDArray
from tokenizers import Tokenizer as FastTokenizer
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from app.errors import BundleError

# What the families of tokenizers call the token for what they don't know.
UNKNOWN_TOKENS = ("[UNK]", "<unk>")
# Words whose pieces are kept, at most: several megabytes, and more than a shop's queries use in a day. Longer ones are
# no words, come once, and would take a hundred.
WORDS = 20_000
LONGEST_WORD = 24  # characters


class Tokens(NamedTuple):
    """``ids`` [n] int64 with the special tokens at both ends; ``unknown`` of them are the unknown token."""

    ids: NDArray[np.int64]
    truncated: bool
    unknown: int


class Tokenizer:
    """Encodes normalised queries, cut to ``max_tokens`` with the closing special token kept.

    Raises ``BundleError`` when the file can't be read or knows more tokens than ``vocabulary`` rows of embeddings.
    """

    def __init__(self, path: Path, *, max_tokens: int, vocabulary: int) -> None:
        try:
            self._tokenizer = FastTokenizer.from_file(str(path))
        except Exception as error:  # tokenizers raises bare Exception
            raise BundleError(f"{path}: not a tokenizer: {error}") from error
        # Cutting here costs less than the library's truncation, which builds the overflow as well.
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        if (known := self._tokenizer.get_vocab_size()) > vocabulary:
            raise BundleError(f"{path}: {known} tokens, but the embedding table has {vocabulary} rows")
        self._max_tokens = max_tokens
        ids = (self._tokenizer.token_to_id(token) for token in UNKNOWN_TOKENS)
        self._unknown_id = next((id_ for id_ in ids if id_ is not None), -1)
        mask = self._tokenizer.encode("a").special_tokens_mask
        self._opening = mask.index(0) if 0 in mask else 0  # how many special tokens go before the text
        self._closing = mask[::-1].index(0) if 0 in mask else 0
        self._specials = self._tokenizer.encode("").ids
        self._words: LRUCache[str, list[int]] | None = LRUCache(WORDS) if self._is_word_by_word() else None

    def encode(self, text: str) -> Tokens:
        ids = self._tokenizer.encode(text).ids if self._words is None else self._encode_words(text)
        truncated = len(ids) > self._max_tokens
        if truncated:
            ids = [*ids[: self._max_tokens - 1], ids[-1]]
        return Tokens(np.array(ids, np.int64), truncated, ids.count(self._unknown_id))

    def _encode_words(self, text: str) -> list[int]:
        words = self._words
        assert words is not None
        ids = self._specials[: self._opening]
        for word in text.split(" "):
            pieces = words.get(word)
            if pieces is None:
                encoded = self._tokenizer.encode(word).ids
                pieces = encoded[self._opening : len(encoded) - self._closing]
                if len(word) <= LONGEST_WORD:
                    words[word] = pieces
            ids += pieces
        ids += self._specials[self._opening :]
        return ids

    def _is_word_by_word(self) -> bool:
        """Whether no rule of this tokenizer looks across a space, as those of a byte-level or sentence-piece one do."""
        return (
            isinstance(self._tokenizer.pre_tokenizer, BertPreTokenizer)
            and isinstance(self._tokenizer.normalizer, BertNormalizer)
            and not any(" " in token.content for token in self._tokenizer.get_added_tokens_decoder().values())
        )
