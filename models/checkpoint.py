"""The checkpoint folder: what training leaves for compiling, evaluating and training again.

    config.json, model.safetensors (float16)     a Hugging Face sequence classifier
    tokenizer.json, tokenizer_config.json        its tokenizer
    training.json                                this module's ``TrainingRecord``

Only the record is read here, with pydantic, so that a reader needs no torch; ``load_model`` is the one that does.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from app.text import NORMALISER_VERSION

if TYPE_CHECKING:
    from transformers import PreTrainedModel

RECORD = "training.json"
FILES = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", RECORD)

Share = Annotated[float, Field(ge=0, le=1)]


class CheckpointError(ValueError):
    """A checkpoint folder that can't be used; the message names the file and what is wrong with it."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class LabelRecord(_Frozen):
    name: Annotated[str, Field(min_length=1)]
    definition: str = ""
    group: Annotated[str, Field(min_length=1)]


class Lineage(_Frozen):
    base: str  # the folder or package that training started from
    commit: str  # of this project, "" outside a repository
    data_digest: str  # sha256 of the table
    seed: int
    versions: dict[str, str]  # of what decides the result: python, torch, transformers, …
    command: str
    teacher_digest: str = ""  # sha256 of the weights of the teacher that this is a student of
    kept_layers: tuple[int, ...] = ()  # of that teacher, from 0


class TrainingRecord(_Frozen):
    """What a checkpoint knows of itself. ``labels`` is in the order of the logits."""

    task: str = "query-intent"
    normaliser: int
    max_tokens: Annotated[int, Field(ge=3, le=512)]
    labels: Annotated[tuple[LabelRecord, ...], Field(min_length=2)]
    temperature: Annotated[float, Field(gt=0)]
    # What the model takes a label's share of the queries to be: the training rows, with the loss's class weights.
    label_priors: dict[str, Share]
    abstain_threshold: Share
    group_thresholds: dict[str, Share] = {}  # asked of a group's confidence as well, where it has one
    quality: dict[str, Any] = {}  # split → scores, see models.training.scores
    lineage: Lineage

    @model_validator(mode="after")
    def _labels_agree(self) -> TrainingRecord:
        names = [label.name for label in self.labels]
        if len(set(names)) < len(names):
            raise ValueError(f"a label is named twice: {', '.join(names)}")
        if not set(self.group_thresholds) <= {label.group for label in self.labels}:
            raise ValueError("group_thresholds names a group that no label has")
        if set(self.label_priors) != set(names):
            raise ValueError("label_priors and labels name different labels")
        if abs(sum(self.label_priors.values()) - 1) > 1e-3:
            raise ValueError(f"label_priors sum to {sum(self.label_priors.values()):.4f}, not to 1")
        return self


def save_record(folder: Path, record: TrainingRecord) -> None:
    text = json.dumps(record.model_dump(), indent=2, ensure_ascii=False)
    (folder / RECORD).write_text(text + "\n", encoding="utf-8")


def load_record(folder: Path) -> TrainingRecord:
    """Read and check ``training.json`` and that the folder is whole.

    Raises ``CheckpointError`` when a file is missing, the record is broken, its labels differ from those in
    config.json, or it was trained on text normalised by other rules than this version's.
    """
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        raise CheckpointError(f"{folder}: not a checkpoint, {', '.join(missing)} missing")
    try:
        record = TrainingRecord.model_validate_json((folder / RECORD).read_bytes())
        config = json.loads((folder / "config.json").read_bytes())
        config_labels = [config["id2label"][str(index)] for index in range(len(config["id2label"]))]
    except ValidationError as error:
        raise CheckpointError(f"{folder / RECORD}: {_first(error)}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{folder / 'config.json'}: {type(error).__name__}: {error}") from error
    names = [label.name for label in record.labels]
    if names != config_labels:
        raise CheckpointError(f"{folder}: {RECORD} has the labels {names}, config.json {config_labels}")
    if record.normaliser != NORMALISER_VERSION:
        raise CheckpointError(
            f"{folder}: trained with normaliser {record.normaliser}, this version is {NORMALISER_VERSION}: train again"
        )
    return record


def load_model(folder: Path) -> PreTrainedModel:
    """The classifier of a checkpoint in float32 and evaluation mode; weights lie in float16 on disk."""
    import torch
    from transformers import AutoModelForSequenceClassification

    model: PreTrainedModel = AutoModelForSequenceClassification.from_pretrained(
        folder, local_files_only=True, dtype=torch.float32
    )
    model.train(False)
    return model


def _first(error: ValidationError) -> str:
    first = error.errors()[0]
    where = ".".join(map(str, first["loc"]))
    return f"{where}: {first['msg']}" if where else str(first["msg"])
