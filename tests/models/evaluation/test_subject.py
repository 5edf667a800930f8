"""What can be judged, by its place on disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="a checkpoint needs torch")

import torch
from transformers import AlbertConfig, AlbertForSequenceClassification, PreTrainedTokenizerFast
from transformers.utils import logging

from app.errors import BundleError
from app.text import NORMALISER_VERSION
from models.checkpoint import CheckpointError, LabelRecord, Lineage, TrainingRecord, save_record
from models.evaluation.subject import checkpoint_subject, find_subject
from tests.tiny_models import LABELS, VOCABULARY, make_tokenizer, save_checkpoint


def save_albert(folder: Path) -> Path:
    """A random classifier whose layers share their weights, which can't be packed."""
    torch.manual_seed(0)
    config = AlbertConfig(
        vocab_size=len(VOCABULARY),
        embedding_size=16,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        pad_token_id=1,
        id2label=dict(enumerate(LABELS)),
        label2id={label: index for index, label in enumerate(LABELS)},
    )
    logging.disable_progress_bar()
    AlbertForSequenceClassification(config).save_pretrained(folder)
    PreTrainedTokenizerFast(
        tokenizer_object=make_tokenizer(),
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_input_names=["input_ids", "attention_mask"],
    ).save_pretrained(folder)
    return folder


def record() -> TrainingRecord:
    return TrainingRecord(
        normaliser=NORMALISER_VERSION,
        max_tokens=16,
        labels=tuple(LabelRecord(name=label, group="help" if label == "help" else "shop") for label in LABELS),
        temperature=2.0,
        label_priors=dict(zip(LABELS, (0.5, 0.3, 0.2), strict=True)),
        abstain_threshold=0.4,
        lineage=Lineage(base="", commit="", data_digest="", seed=0, versions={}, command=""),
    )


def test_a_plain_checkpoint_is_judged_with_what_is_assumed_of_it(tmp_path: Path) -> None:
    subject = find_subject(str(save_checkpoint(tmp_path / "plain")))
    assert (subject.names, subject.groups) == (LABELS, LABELS)
    assert subject.label_priors == pytest.approx(dict.fromkeys(LABELS, 1 / 3))
    assert subject.notes
    found = subject.load()(["lamp", "song opera", "refund"])
    assert found.shape == (3, 3)
    assert found.argmax(axis=1).tolist() == [0, 1, 2]


def test_an_architecture_that_can_not_be_packed_is_judged_as_in_training(tmp_path: Path) -> None:
    folder = save_albert(tmp_path / "albert")
    save_record(folder, record())
    subject = checkpoint_subject(folder)
    assert (subject.names, subject.groups, subject.max_tokens) == (LABELS, ["shop", "help"], 16)
    assert (subject.label_priors["product"], subject.abstain_threshold) == (0.5, 0.4)
    answer = subject.load()
    assert answer(["lamp", "song opera poem"])[0] == pytest.approx(answer(["lamp"])[0], abs=1e-6)
    assert np.allclose(answer(["lamp"]).sum(axis=1), 1)


def test_without_a_training_record_such_an_architecture_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"neither training\.json nor one of"):
        checkpoint_subject(save_albert(tmp_path / "albert"))


def test_a_bundle_is_named_alone_or_with_its_target(tiny_bundle: Path) -> None:
    """Made by hand, it has no target that could be judged; each way of naming one is understood."""
    with pytest.raises(BundleError, match="has no target 'cpu'"):
        find_subject(str(tiny_bundle))
    with pytest.raises(BundleError, match="has no target 'torch'"):
        find_subject(f"{tiny_bundle}:torch")
    with pytest.raises(BundleError, match="'null' can't be judged here, only cpu, torch"):
        find_subject(f"{tiny_bundle}:null")


@pytest.mark.parametrize("where", ["nowhere", "nowhere:cpu", ""])
def test_anything_else_is_refused_with_what_it_could_have_been(where: str, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"neither a bundle \(bundle\.json\), BUNDLE:TARGET, nor a checkpoint"):
        find_subject(str(tmp_path / where))
