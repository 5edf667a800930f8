"""What is compiled: a checkpoint folder with everything that its bundle will say of it.

A checkpoint of ``query-intent train`` knows all of it (``training.json``). Any other Hugging Face classifier of an
architecture that can be packed works too, and a traced one (``cpu_model.pt``) beside its config.json; what it doesn't
know is assumed, and said.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from pydantic import TypeAdapter, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file

from app.bundle import Label
from app.text import NORMALISER_VERSION
from models.architectures import ADAPTERS, Converted, UnsupportedCheckpoint, convert
from models.checkpoint import RECORD, CheckpointError, load_record
from models.compiling.torchscript import TracedClassifier

TRACED = "cpu_model.pt"
WEIGHTS = ("model.safetensors", "pytorch_model.bin", TRACED)
# Before it, torch.load ran code from a pickle even with weights_only (CVE-2025-32434).
_SAFE_PICKLES = (2, 6)
# Queries of shops have 9 tokens on average and 22 at the 99th percentile.
DEFAULT_MAX_TOKENS = 32


@dataclass(frozen=True, slots=True)
class Source:
    """A checkpoint, converted, and what its bundle's manifest takes from it."""

    converted: Converted
    tokenizer: Path
    labels: list[Label]
    max_tokens: int
    normaliser: int = NORMALISER_VERSION
    temperature: float = 1.0
    label_priors: dict[str, float] = field(default_factory=dict)
    abstain_threshold: float = 0.0
    group_thresholds: dict[str, float] = field(default_factory=dict)
    quality: dict[str, Any] = field(default_factory=dict)
    lineage: dict[str, Any] = field(default_factory=dict)
    assumed: tuple[str, ...] = ()  # in words, for whoever compiles


def read_source(checkpoint: Path, *, labels: Path | None = None, config: Path | None = None) -> Source:
    """Read ``checkpoint``: a folder, or the traced classifier (``*.pt``) in one.

    ``labels`` (JSON: names, or objects of name, definition and group) and ``config`` (config.json) go before what lies
    there. Raises ``CheckpointError`` for files that are missing or broken and labels that don't match the head, and
    ``UnsupportedCheckpoint`` for models that can't be packed.
    """
    folder = checkpoint.parent if checkpoint.is_file() else checkpoint
    weights = checkpoint if checkpoint.is_file() else _weights_file(folder)
    settings = _read_config(config or folder / "config.json")
    tokenizer = folder / "tokenizer.json"
    if not tokenizer.is_file():
        raise CheckpointError(f"{folder}: no tokenizer.json; save the checkpoint with a fast tokenizer")
    converted, remark = _convert(settings, weights)
    known = _recorded(folder) if (folder / RECORD).is_file() else _assumed(settings, converted)
    if labels is not None:
        known["labels"] = _read_labels(labels)
        known["group_thresholds"] = {}  # groups may be others now
    names = [label.name for label in known["labels"]]
    if len(names) != converted.encoder.config.labels:
        raise CheckpointError(f"{folder}: {len(names)} labels for a head of {converted.encoder.config.labels}")
    if set(known.get("label_priors", {})) != set(names):
        known["label_priors"] = dict.fromkeys(names, 1 / len(names))
    known["lineage"] = {**known.get("lineage", {}), "weights_sha256": hashlib.sha256(weights.read_bytes()).hexdigest()}
    known["assumed"] = (*known.get("assumed", ()), *remark)
    return Source(converted=converted, tokenizer=tokenizer, **known)


def _convert(config: dict[str, Any], weights: Path) -> tuple[Converted, tuple[str, ...]]:
    """The packed model, and what couldn't be proved of it."""
    if weights.suffix != ".pt":
        return convert(config, _read_tensors(weights)), ()
    traced = TracedClassifier(weights)
    converted = convert(config, traced.tensors(config["model_type"]))
    remark = traced.demand_same_answer(converted, config)
    return converted, (remark,) if remark else ()


def _recorded(folder: Path) -> dict[str, Any]:
    record = load_record(folder)
    labels = [Label(name=label.name, definition=label.definition, group=label.group) for label in record.labels]
    names = ("normaliser", "max_tokens", "temperature", "label_priors", "quality")
    thresholds = ("abstain_threshold", "group_thresholds")
    kept = {name: getattr(record, name) for name in (*names, *thresholds)}
    return {"labels": labels, "lineage": record.lineage.model_dump()} | kept


def _assumed(config: dict[str, Any], converted: Converted) -> dict[str, Any]:
    names = [name for _, name in sorted(config["id2label"].items(), key=lambda item: int(item[0]))]
    max_tokens = min(DEFAULT_MAX_TOKENS, len(converted.embeddings.position))
    return {
        "labels": [Label(name=name, definition="", group=name) for name in names],
        "max_tokens": max_tokens,
        "assumed": (
            f"no {RECORD}: temperature 1, even priors, no abstaining, each label its own group",
            f"queries are cut at {max_tokens} tokens and normalised by this version's rules",
        ),
    }


def _read_config(path: Path) -> dict[str, Any]:
    """config.json with the defaults that its architecture has in transformers."""
    with _broken(path):
        written = json.loads(path.read_bytes())
        architecture = written.get("model_type")
    if architecture not in ADAPTERS:
        raise UnsupportedCheckpoint(f"{path}: architecture {architecture!r}: only {', '.join(ADAPTERS)} can be packed")
    from transformers import AutoConfig

    # What is written wins: newer versions of transformers drop settings that older checkpoints rely on.
    return {**AutoConfig.from_pretrained(path, local_files_only=True).to_dict(), **written}


def _weights_file(folder: Path) -> Path:
    for name in WEIGHTS:
        if (folder / name).is_file():
            return folder / name
    raise CheckpointError(f"{folder}: has none of {', '.join(WEIGHTS)}")


def _read_tensors(path: Path) -> dict[str, torch.Tensor]:
    with _broken(path):
        if path.suffix == ".safetensors":
            return load_file(path)
        if tuple(map(int, torch.__version__.split(".")[:2])) < _SAFE_PICKLES:
            raise ValueError(f"torch {torch.__version__} loads no pickle safely; save the checkpoint as safetensors")
        state: dict[str, torch.Tensor] = torch.load(path, map_location="cpu", weights_only=True)
        return state


def _read_labels(path: Path) -> list[Label]:
    with _broken(path):
        named = TypeAdapter(list[str] | list[Label]).validate_json(path.read_bytes())
    return [Label(name=label, definition="", group=label) if isinstance(label, str) else label for label in named]


@contextmanager
def _broken(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, AttributeError, RuntimeError, ValidationError, SafetensorError) as error:
        raise CheckpointError(f"{path}: can't be read: {error}") from error
