"""Texts as padded batches of token ids, and the logits that a model gives for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedTokenizerBase

from models.training.scores import Floats


class Encoded:
    """Texts as token ids, made anew each epoch when they are augmented."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], max_tokens: int) -> None:
        self.tokenizer = tokenizer
        ids = tokenizer(list(texts), truncation=True, max_length=max_tokens)["input_ids"]
        self.input_ids: list[list[int]] = ids
        self.lengths = [len(row) for row in self.input_ids]

    def batch(self, indices: Sequence[int], device: torch.device) -> dict[str, torch.Tensor]:
        """``input_ids`` and ``attention_mask``, each int64 [len(indices), longest of them]."""
        longest = max(self.lengths[index] for index in indices)
        pad = self.tokenizer.pad_token_id
        rows = [self.input_ids[index] + [pad] * (longest - self.lengths[index]) for index in indices]
        mask = [[1] * self.lengths[index] + [0] * (longest - self.lengths[index]) for index in indices]
        return {"input_ids": torch.tensor(rows, device=device), "attention_mask": torch.tensor(mask, device=device)}


def predict(model: torch.nn.Module, encoded: Encoded, device: torch.device, batch_size: int = 128) -> Floats:
    """Logits [n, labels] in the order of the texts; batches are formed by length."""
    model.eval()
    order = sorted(range(len(encoded.lengths)), key=lambda index: encoded.lengths[index])
    logits: list[np.ndarray[Any, Any]] = []
    with torch.inference_mode():
        for start in range(0, len(order), batch_size):
            batch = encoded.batch(order[start : start + batch_size], device)
            logits.append(model(**batch).logits.float().cpu().numpy())
    result = np.empty((len(order), logits[0].shape[1]), dtype=np.float32)
    result[order] = np.concatenate(logits)
    return result
