"""Queries in other languages: the shipped model may know what they want, and must not be sure of anything wrong."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import models
from app.settings import SHIPPED_BUNDLE
from models.data.table import read_table
from models.evaluation.judged import Judged
from models.evaluation.labelled import read_labelled
from models.evaluation.subject import bundle_subject
from models.labels import LABELS

TABLE = Path(models.__file__).with_name("other_languages.csv")


def test_every_language_has_products_media_help_and_other() -> None:
    rows = read_table(TABLE)
    assert set(Counter(row.source for row in rows).values()) == {10}
    group_of = {label.name: label.group for label in LABELS}
    for language in {row.source for row in rows}:
        asked = {group_of[row.label] for row in rows if row.source == language}
        assert asked == {"product_search", "media", "help", "other"}, language


def test_hardly_any_is_answered_wrongly_by_the_shipped_model() -> None:
    pytest.importorskip("openvino", reason="the shipped target needs OpenVINO")
    subject = bundle_subject(SHIPPED_BUNDLE, "cpu")
    labelled = read_labelled(TABLE, subject.names)
    answers = np.asarray(subject.load()(labelled.texts))
    judged = Judged(answers, labelled.truth, subject.names, subject.groups, subject.group_of)
    is_wrong = judged.is_sure(subject.abstain_threshold, subject.group_thresholds) & ~judged.is_right
    assert np.mean(is_wrong) <= 0.1
