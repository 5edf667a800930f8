"""Confidence for another mix, against Bayes' rule by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from models.evaluation.priors import (
    PriorsError,
    estimate,
    read_priors,
    reweight,
    standard_mixes,
    training_priors,
)
from tests.fake_subjects import LABELS, PRIORS

TRAINING = training_priors(PRIORS, LABELS)  # product 0.4, media 0.3, status 0.2, refund 0.1


class TestReweight:
    def test_nine_to_one_for_help_is_less_than_even_where_help_is_rare(self) -> None:
        # The odds 9 become 9 · (0.04 / 0.96) / (0.3 / 0.7) = 0.875.
        found = reweight(np.array([[0.9, 0.1]]), np.array([0.3, 0.7]), np.array([0.04, 0.96]))
        assert found[0].tolist() == pytest.approx([0.875 / 1.875, 1 / 1.875])

    def test_the_training_mix_changes_nothing(self) -> None:
        probabilities = np.random.default_rng(1).dirichlet([1] * 4, 20)
        assert reweight(probabilities, TRAINING, TRAINING) == pytest.approx(probabilities)


class TestReadPriors:
    def test_a_share_for_every_label(self) -> None:
        shares = {"refund": 0.1, "status": 0.2, "media": 0.3, "product": 0.4}
        assert read_priors(json.dumps(shares), LABELS, TRAINING).tolist() == pytest.approx([0.4, 0.3, 0.2, 0.1])

    def test_a_share_for_every_group_keeps_the_proportions_inside_it(self) -> None:
        shares = {"product": 0.8, "media": 0.14, "help": 0.06}
        assert read_priors(json.dumps(shares), LABELS, TRAINING).tolist() == pytest.approx([0.8, 0.14, 0.04, 0.02])

    def test_a_file_of_the_same(self, tmp_path: Path) -> None:
        path = tmp_path / "priors.json"
        path.write_text(json.dumps({"product": 0.5, "media": 0.2, "help": 0.3}))
        assert read_priors(str(path), LABELS, TRAINING).tolist() == pytest.approx([0.5, 0.2, 0.2, 0.1])

    def test_shares_are_scaled_to_add_up_to_1(self) -> None:
        shares = {"product": 50, "media": 20, "help": 30}
        assert read_priors(json.dumps(shares), LABELS, TRAINING).tolist() == pytest.approx([0.5, 0.2, 0.2, 0.1])

    def test_uniform_is_every_label_alike(self) -> None:
        assert read_priors("uniform", LABELS, TRAINING).tolist() == [0.25] * 4

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ("no-such-file.json", "neither 'uniform', a JSON object nor a file of one"),
            ('{"product": 1', "neither 'uniform', a JSON object nor a file of one"),
            ('{"product": 1.0, "media": 0, "help": 0}', "shares over 0"),
            ('{"product": 0.5, "media": true, "help": 0.5}', "shares over 0"),
            ('{"product": Infinity, "media": 1, "help": 1}', "shares over 0"),
            ('{"product": "most"}', "shares over 0"),
            ('{"product": 0.5, "help": 0.5}', "name every label .* or every group"),
        ],
    )
    def test_anything_else_is_refused_with_what_is_wrong(self, given: str, message: str) -> None:
        with pytest.raises(PriorsError, match=message):
            read_priors(given, LABELS, TRAINING)

    def test_a_label_that_training_never_had_can_not_be_reweighted(self) -> None:
        with pytest.raises(PriorsError, match="0 for refund"):
            training_priors(PRIORS | {"refund": 0.0}, LABELS)


class TestEstimate:
    def test_it_finds_the_shares_behind_the_answers(self) -> None:
        # Two kinds of queries: help says the first with 0.8, the others with 0.2. With 10 % help in the traffic the
        # first is 0.1 · 0.8 + 0.9 · 0.2 = 26 % of it.
        answers = np.array([[0.8, 0.2], [0.2, 0.8]])
        found = estimate(answers, np.array([26.0, 74.0]), np.array([0.5, 0.5]))
        assert found.has_converged
        assert found.shares.tolist() == pytest.approx([0.1, 0.9], abs=1e-4)

    def test_the_training_mix_estimates_itself(self) -> None:
        answers = np.array([[0.8, 0.2], [0.2, 0.8]])
        found = estimate(answers, np.array([1.0, 1.0]), np.array([0.5, 0.5]))
        assert (found.shares.tolist(), found.rounds) == (pytest.approx([0.5, 0.5]), 1)

    def test_no_label_is_forbidden_for_good(self) -> None:
        found = estimate(np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([1.0, 1.0]), np.array([0.5, 0.5]))
        assert found.shares[1] == pytest.approx(1e-5, rel=1e-3)
        assert found.shares.sum() == pytest.approx(1)

    def test_it_says_when_it_did_not_finish(self) -> None:
        answers = np.array([[0.6, 0.4], [0.4, 0.6]])
        assert not estimate(answers, np.array([1.0, 0.0]), np.array([0.5, 0.5]), most=3).has_converged


def test_the_standard_mixes_are_a_shop_with_little_help_and_every_group_alike() -> None:
    mixes = standard_mixes(LABELS, TRAINING)
    assert list(mixes) == ["shop", "uniform"]
    assert mixes["shop"].tolist() == pytest.approx([0.96 * 4 / 7, 0.96 * 3 / 7, 0.04 * 2 / 3, 0.04 / 3])
    assert mixes["uniform"].tolist() == pytest.approx([1 / 3, 1 / 3, 2 / 9, 1 / 9])
    assert list(standard_mixes(LABELS[:2], TRAINING[:2])) == ["uniform"]  # no help, no shop's mix
