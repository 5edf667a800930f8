"""Text to token ids, by the tokenizer that the bundle brings."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer as FastTokenizer

from app.errors import BundleError

# What the families of tokenizers call the token for what they don't know.
UNKNOWN_TOKENS = ("[UNK]", "<unk>")


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

    def encode(self, text: str) -> Tokens:
        ids = self._tokenizer.encode(text).ids
        truncated = len(ids) > self._max_tokens
        if truncated:
            ids = [*ids[: self._max_tokens - 1], ids[-1]]
        return Tokens(np.array(ids, np.int64), truncated, ids.count(self._unknown_id))
