"""The whole report of a model whose answers are written down."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from models.data.table import Row
from models.evaluation.document import rounded
from models.evaluation.priors import PriorsError, training_priors
from models.evaluation.report import Request, evaluate
from models.evaluation.subject import Subject
from models.training.scores import Floats
from tests.fake_subjects import LABELS, PRIORS, fake_subject, labelled, sure

TRAINING = training_priors(PRIORS, LABELS)
ROWS = [Row("garden tent", "product"), Row("garden novel", "media"), Row("parcel", "status"), Row("refund", "refund")]
ANSWERS = {
    "garden tent": [0.5, 0.3, 0.2, 0.0],
    "garden novel": [0.5, 0.4, 0.1, 0.0],
    "parcel": sure("status"),
    "refund": sure("refund"),
    "capital of peru": [0.3, 0.3, 0.2, 0.2],
}


def report(subject: Subject | None = None, out_of_scope: Sequence[str] = (), **wanted: Any) -> dict[str, Any]:
    request = Request(**({"thresholds": [0.5], "keep_recall": 0.85, "home": "product"} | wanted))
    return evaluate(subject or fake_subject(ANSWERS), labelled(ROWS, out_of_scope), TRAINING, request)[0]


def test_without_wishes_it_has_scores_segments_mixes_redirects_and_mistakes() -> None:
    found = report()
    assert found["scores"]["accuracy"]["value"] == 0.75
    assert list(found["mixes"]) == ["as is", "shop", "uniform"]
    assert [each["query"] for each in found["mistakes"]] == ["garden novel"]
    assert found["redirects"]["settings"]["0.5"]["false_redirects"]["value"] == 0.0
    assert found["priors"] is None
    assert not {"out_of_scope", "estimated_priors"} & set(found)


def test_a_known_mix_corrects_every_answer() -> None:
    """Where media is more frequent than in training, what could be either is media."""
    found = report(priors='{"product": 0.2, "media": 0.5, "help": 0.3}')
    assert found["scores"]["labels"]["media"]["recall"]["value"] == 1.0
    assert found["scores"]["labels"]["product"]["recall"]["value"] == 0.0
    assert found["priors"]["media"] == 0.5
    assert list(found["mixes"]) == ["as is", "shop", "uniform", "given"]
    # The mixes judge the model's own confidence against what correcting for each of them makes of it.
    assert found["mixes"]["as is"]["uncorrected"]["accuracy"] == 0.75


def test_the_mix_can_be_estimated_from_queries_as_often_as_they_came() -> None:
    traffic = {"parcel": 98, "refund": 1, "garden tent": 1}
    found = report(traffic=traffic, priors="estimated")
    assert (found["estimated_priors"]["queries"], found["estimated_priors"]["distinct"]) == (100, 3)
    assert found["estimated_priors"]["labels"]["status"] == pytest.approx(0.98, abs=0.02)
    assert found["estimated_priors"]["groups"]["help"] == pytest.approx(0.99, abs=0.02)
    assert found["priors"] == found["estimated_priors"]["labels"]
    assert "estimated" in found["mixes"]


def test_an_estimated_mix_without_queries_is_refused_before_the_model_is_loaded() -> None:
    def load() -> Any:
        raise AssertionError("was loaded")

    subject = Subject("fake", LABELS, 32, PRIORS, 0.5, {}, load)
    with pytest.raises(PriorsError, match="needs the unlabelled queries"):
        report(subject, priors="estimated")
    with pytest.raises(PriorsError, match="name every label"):
        report(subject, priors='{"product": 0.2, "media": 0.5}')


class TestOutOfScope:
    def test_rows_of_a_label_that_the_model_lacks_are_asked_and_judged_by_confidence(self) -> None:
        found = report(out_of_scope=["capital of peru"], out_of_scope_label="oos")
        assert found["scores"]["n"] == 4
        assert (found["out_of_scope"]["out_of_scope"], found["out_of_scope"]["auroc"]) == (1, 1.0)

    def test_a_label_of_the_model_is_left_out_of_the_confidence(self) -> None:
        """As if media were what no shop answers: a sure media is as much out of scope as an even guess."""
        found = report(out_of_scope_label="media")["out_of_scope"]
        # In scope 0.5 (product), 0.97 and 0.97; out of scope 0.5 without media's 0.4.
        assert (found["in_scope"], found["out_of_scope"]) == (3, 1)
        assert found["auroc"] == pytest.approx(2.5 / 3)


class TestPerturbed:
    class Literal:
        """Right on whole words only."""

        def __init__(self) -> None:
            self.asked: list[str] = []

        def __call__(self, texts: Sequence[str]) -> Floats:
            self.asked += texts
            return np.array([ANSWERS.get(text, sure("product", 0.4)) for text in texts])

    @pytest.mark.parametrize("kind", ["prefix", "typo"])
    def test_changed_rows_are_asked_again_and_compared_with_what_they_were(self, kind: str) -> None:
        answer = self.Literal()
        subject = Subject("literal", LABELS, 32, PRIORS, 0.5, {}, lambda: answer)
        found = report(subject, perturb=[kind])["segments"]["perturbed"][kind]
        changed = answer.asked[len(ROWS) :]
        assert found["n"] == len(changed) > 0
        assert not set(changed) & set(ANSWERS)
        assert found["examples"] == changed[:5]
        assert found["against_whole"]["accuracy"]["n"] == len(changed)
        assert found["against_whole"]["accuracy"]["b"] == found["accuracy"]["value"]

    def test_the_same_seed_asks_the_same(self) -> None:
        answers = [self.Literal(), self.Literal()]
        for answer in answers:
            report(Subject("literal", LABELS, 32, PRIORS, 0.5, {}, lambda answer=answer: answer), perturb=["typo"])
        assert answers[0].asked == answers[1].asked


def test_numbers_of_a_document_are_rounded_wherever_they_are() -> None:
    assert rounded({"a": [1 / 3, {"b": (2 / 3, 1, None)}]}) == {"a": [0.333333, {"b": [0.666667, 1, None]}]}
