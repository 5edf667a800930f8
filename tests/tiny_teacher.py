"""A small checkpoint that knows its table: what a student is made of."""

from __future__ import annotations

import random
from pathlib import Path

import torch
from transformers import PreTrainedTokenizerFast
from transformers.utils import logging

from app.text import NORMALISER_VERSION
from models.checkpoint import LabelRecord, Lineage, TrainingRecord, save_record
from tests.tiny_models import WORDS, make_classifier, make_tokenizer, save_checkpoint, solve_head

NAMES = sorted(WORDS)  # as a table's labels come


def rows(count: int = 40) -> list[tuple[str, str]]:
    """Texts of two words, and their labels."""
    chance = random.Random(1)
    return list({" ".join(chance.sample(WORDS[name], 2)): name for name in NAMES for _ in range(count)}.items())


def save_teacher(folder: Path) -> Path:
    """Two layers that tell the words of ``WORDS`` apart, with all files of a checkpoint."""
    save_checkpoint(folder)
    logging.disable_progress_bar()
    model = make_classifier("bert")
    solve_head(model)
    with torch.no_grad():
        order = [list(WORDS).index(name) for name in NAMES]
        model.classifier.weight.copy_(model.classifier.weight[order])
        model.classifier.bias.copy_(model.classifier.bias[order])
    model.config.id2label = dict(enumerate(NAMES))
    model.config.label2id = {name: index for index, name in enumerate(NAMES)}
    model.save_pretrained(folder)
    PreTrainedTokenizerFast(
        tokenizer_object=make_tokenizer(), unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]",
        model_input_names=["input_ids", "attention_mask"],
    ).save_pretrained(folder)  # fmt: skip
    record = TrainingRecord(
        normaliser=NORMALISER_VERSION,
        max_tokens=32,
        labels=tuple(LabelRecord(name=name, group=name) for name in NAMES),
        temperature=1.0,
        label_priors=dict.fromkeys(NAMES, 1 / 3),
        abstain_threshold=0.0,
        lineage=Lineage(base="", commit="", data_digest="", seed=0, versions={}, command=""),
    )
    save_record(folder, record)
    return folder
