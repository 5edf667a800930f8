"""Priors: confidences for the mix of queries that a deployment really has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from app.bundle import Label
from app.errors import SettingsError
from app.priors import group_thresholds, log_shift, read_priors
from app.ranking import Ranker

TRAINING: Mapping[str, float] = {"product": 0.7, "help": 0.3}


def write(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_nine_in_ten_for_help_means_less_than_one_in_two_where_help_is_4_per_cent_instead_of_30() -> None:
    """By hand: 0.9 · (0.04 / 0.3) against 0.1 · (0.96 / 0.7) is 0.12 against 0.137, so 0.4667 of the whole."""
    labels = [Label(name=name, definition="", group=name) for name in TRAINING]
    shift = log_shift({"product": 0.96, "help": 0.04}, training=TRAINING)
    logits = np.log(np.array([[0.1, 0.9]], np.float32))
    (probabilities,) = Ranker(labels, temperature=1.0, shift=shift).probabilities(logits)
    assert probabilities.tolist() == pytest.approx([0.5333, 0.4667], abs=1e-4)


def test_the_shares_of_training_change_nothing() -> None:
    assert log_shift(TRAINING, training=TRAINING) == [0.0, 0.0]


def test_shares_are_scaled_to_one_and_put_in_the_labels_order(tmp_path: Path) -> None:
    priors = read_priors(write(tmp_path / "p.json", {"help": 4, "product": 96}), training=TRAINING)
    assert list(priors.items()) == [("product", 0.96), ("help", 0.04)]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("nonsense", "not JSON"),
        ([0.5, 0.5], "must hold a share for each of product, help"),
        ({"product": 1}, "must hold a share for each of product, help"),
        ({"product": 1, "help": 1, "media": 1}, "and nothing else"),
        ({"product": 1, "help": 0}, "help is 0, not a positive number"),
        ({"product": "1", "help": 1}, "product is '1', not a positive number"),
        ({"product": True, "help": 1}, "product is True"),
        ('{"product": NaN, "help": 1}', "product is nan"),
        ('{"product": Infinity, "help": 1}', "product is inf"),
    ],
)
def test_what_is_wrong_with_the_shares_is_said(tmp_path: Path, content: Any, complaint: str) -> None:
    path = write(tmp_path / "p.json", content)
    with pytest.raises(SettingsError, match=r"p\.json: ") as refusal:
        read_priors(path, training=TRAINING)
    assert complaint in str(refusal.value)


def test_a_label_that_training_never_saw_can_not_be_corrected(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="help has no share in training"):
        read_priors(write(tmp_path / "p.json", {"product": 1, "help": 1}), training={"product": 1.0, "help": 0.0})


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"none\.json: No such file"):
        read_priors(tmp_path / "none.json", training=TRAINING)


class TestGroupThresholds:
    GROUPS: ClassVar = {"product": "product", "refund": "help", "status": "help"}
    TRAINING: ClassVar = {"product": 0.5, "refund": 0.3, "status": 0.2}

    def test_the_same_queries_reach_them_under_other_shares(self) -> None:
        """A group's corrected confidence in a query, against the rest, reaches the shifted threshold as before."""
        shares = {"product": 0.96, "refund": 0.024, "status": 0.016}
        threshold = group_thresholds({"help": 0.9}, self.GROUPS, shares, training=self.TRAINING)["help"]
        for confidence in (0.89, 0.91):
            odds = confidence / (1 - confidence) * (0.04 / 0.96) / (0.5 / 0.5)
            assert (odds / (1 + odds) >= threshold) is (confidence >= 0.9)

    def test_with_training_s_shares_they_stay_and_a_closed_group_stays_closed(self) -> None:
        same = group_thresholds({"help": 0.9, "product": 1.0}, self.GROUPS, self.TRAINING, training=self.TRAINING)
        assert same == {"help": pytest.approx(0.9), "product": 1.0}
