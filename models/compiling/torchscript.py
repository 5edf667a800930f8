"""A traced classifier (``cpu_model.pt``) as a checkpoint: its tensors by name, and proof that the rest fits.

Tracing keeps the names of a model's parameters but not its settings, and some of those can't be read off any shape: the
number of heads, the activation, where positions begin. They come from config.json, so the traced module itself is asked
a question and has to give the packed graph's answer.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from app.packing import RowBuffers
from models.architectures import Converted
from models.checkpoint import CheckpointError

# A trace may run at its own length only, and doesn't say which: the usual ones, and a short one where any will do.
_LENGTHS = (16, 128, 64, 32, 256, 512, 24, 48, 96, 20, 40, 50, 100)
_ASKED_TOKENS = 12
# float32 in another order of sums; a wrong number of heads moves logits by far more.
_TOLERANCE = 1e-2


class TracedClassifier:
    """``forward(input_ids, attention_mask[, token_type_ids])``, each [1, length] int64, to logits [1, labels].

    Loading it runs no pickled code, but asking it runs the program that is in the file.
    Raises ``CheckpointError`` for files that aren't TorchScript or hold a model compiled for a chip already.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            with warnings.catch_warnings():
                # PyTorch would rather have exported programs; this is what a checkpoint happens to be.
                warnings.filterwarnings("ignore", message=".*torch.jit", category=DeprecationWarning)
                self._module = torch.jit.load(str(path), map_location="cpu").eval()  # type: ignore[no-untyped-call]
        except (RuntimeError, ValueError) as error:
            if "neuron::" in str(error):
                raise CheckpointError(
                    f"{path}: is compiled for Inferentia already; give the model that it was compiled from"
                ) from error
            raise CheckpointError(
                f"{path}: is no TorchScript (torch.jit.save writes it; a pickle is never loaded): "
                f"{str(error).splitlines()[0]}"
            ) from error

    def tensors(self, architecture: str) -> dict[str, torch.Tensor]:
        """Its tensors under the names that ``architecture`` has in transformers, whatever wrapped the model."""
        state: dict[str, torch.Tensor] = self._module.state_dict()
        table = f"{architecture}.embeddings.word_embeddings.weight"
        wrapped = [name for name in state if name == table or name.endswith(f".{table}")]
        if not wrapped:
            shown = ", ".join(list(state)[:3]) or "none: a frozen module has no names left"
            raise CheckpointError(
                f"{self._path}: has no tensor {table!r}, so it's no {architecture} as config.json says (it has {shown})"
            )
        prefix = wrapped[0][: -len(table)]
        return {name[len(prefix) :]: tensor for name, tensor in state.items() if name.startswith(prefix)}

    def demand_same_answer(self, converted: Converted, config: Mapping[str, Any]) -> str | None:
        """Raises ``CheckpointError`` unless ``converted`` gives the logits that the traced module gives.

        Returns a remark where the module runs at none of the usual lengths, so that nothing could be compared.
        """
        padding = config.get("pad_token_id") or 0
        vocabulary = [token for token in range(len(converted.embeddings.word)) if token != padding]
        query = np.random.default_rng(0).choice(vocabulary, size=_ASKED_TOKENS)
        differences = []
        for length in _LENGTHS:
            if length > len(converted.embeddings.position):
                continue
            traced = self._logits(query, length, padding)
            if traced is None:
                continue
            differences.append(float(np.abs(traced - _packed_logits(converted, query, length)).max()))
            if differences[-1] <= _TOLERANCE:
                return None
        if not differences:
            return f"{self._path.name} runs at none of the usual lengths, so config.json couldn't be proved on it"
        raise CheckpointError(
            f"{self._path}: its logits differ by {min(differences):.4f} from those of a {converted.architecture} with "
            "these tensors: config.json isn't this model's (number of heads, activation, padding token?)"
        )

    def _logits(self, query: NDArray[np.int64], length: int, padding: int) -> NDArray[np.float32] | None:
        """Logits [labels] of ``query`` padded to ``length``, or None where the trace doesn't take that length."""
        ids = torch.full((1, length), padding, dtype=torch.int64)
        ids[0, : len(query)] = torch.from_numpy(query)
        mask = (torch.arange(length) < len(query)).long()[None]
        takes = len(list(self._module.graph.inputs())) - 1  # the first is the module itself
        try:
            with torch.no_grad():
                output = self._module(*(ids, mask, torch.zeros_like(ids))[:takes])
        except RuntimeError:
            return None
        logits = output["logits"] if isinstance(output, dict) else output[0] if isinstance(output, tuple) else output
        found: NDArray[np.float32] = logits[0].float().numpy()
        return found


def _packed_logits(converted: Converted, query: NDArray[np.int64], length: int) -> NDArray[np.float32]:
    row = RowBuffers(length, converted.embeddings, pooling=converted.pooling)
    row.fill([query])
    with torch.no_grad():
        logits = converted.encoder(*map(torch.from_numpy, (row.hidden, row.mask, row.pool)))
    found: NDArray[np.float32] = logits[0].numpy()
    return found
