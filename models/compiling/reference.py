"""The reference: a checkpoint in float32 over the bundle's own tables, which every target is held against."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from app.backends.base import Model
from app.packing import Embeddings
from app.ranking import Ranker
from app.tokenization import Tokenizer
from models.compiling.predictor import Ids, Predictor
from models.compiling.source import Source
from models.encoder import PackedEncoder

# Long rows, since eager PyTorch pays per call; the answer doesn't depend on the row. Not under any max_tokens.
_TOKENS = 512


class ReferenceModel:
    """The graph in eager PyTorch, as it is before any target makes something of it."""

    def __init__(self, encoder: PackedEncoder) -> None:
        self._encoder = encoder

    def forward(
        self, hidden: NDArray[np.float32], mask: NDArray[np.float32], pool: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        with torch.no_grad():
            logits: NDArray[np.float32] = self._encoder(*map(torch.from_numpy, (hidden, mask, pool))).numpy()
        return logits

    def close(self) -> None:
        pass


class Reference:
    """Answers texts, and lends other models what they need to answer the same."""

    def __init__(self, source: Source) -> None:
        exact = source.converted.embeddings
        # As the bundle holds them: rounding to float16 belongs to the model, not to a target's error.
        self.embeddings = Embeddings(
            exact.word.astype(np.float16).astype(np.float32), exact.position.astype(np.float16).astype(np.float32)
        )
        self.labels = [label.name for label in source.labels]
        self.ranker = Ranker(source.labels, temperature=source.temperature)
        self.tokenizer = Tokenizer(source.tokenizer, max_tokens=source.max_tokens, vocabulary=len(exact.word))
        self.pooling = source.converted.pooling
        self._own = self.predictor(ReferenceModel(source.converted.encoder), tokens=_TOKENS)

    def encode(self, texts: Sequence[str]) -> list[Ids]:
        """Token ids of normalised ``texts``."""
        return [self.tokenizer.encode(text).ids for text in texts]

    def probabilities(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """[texts, labels]."""
        return self._own.probabilities(self.encode(texts))

    def predictor(self, model: Model, *, tokens: int, one_query_a_row: bool = False) -> Predictor:
        """``model`` over the same tables, with the same meaning of its logits."""
        return Predictor(
            model, self.embeddings, self.ranker, tokens=tokens, pooling=self.pooling, one_query_a_row=one_query_a_row
        )
