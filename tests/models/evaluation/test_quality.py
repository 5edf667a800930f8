"""Scores, redirects, mixes and out-of-scope detection of a handful of answers, counted by hand."""

from __future__ import annotations

from unittest.mock import ANY

import numpy as np
import pytest

from models.data.table import Row
from models.evaluation.mixes import importance, mix_scores
from models.evaluation.out_of_scope import out_of_scope
from models.evaluation.quality import mistakes, quality, segment_scores
from models.evaluation.redirects import false_redirects, highest_threshold
from tests.fake_subjects import judge, labelled, sure

ROWS = [
    Row("oak desk", "product", source="a", style="keyword"),
    Row("i need a lamp for my desk", "product", source="a", style="sentence"),
    Row("dune", "media", source="b", style="keyword"),
    Row("where is it", "status", source="b", style="sentence"),
    Row("money back", "refund", source="b", style="keyword"),
]
ANSWERS = [
    sure("product", 0.9),
    sure("media", 0.7),
    sure("media", 0.4),
    [0.4, 0.0, 0.3, 0.3],  # help by the sum, though its labels are smaller than product
    sure("status", 0.8),
]
JUDGED = judge([row.label for row in ROWS], ANSWERS)
SCORES = quality(JUDGED, 0.5, {}, np.random.default_rng(0))


class TestQuality:
    def test_labels_and_groups_are_judged_apart(self) -> None:
        assert SCORES["n"] == 5
        assert SCORES["accuracy"]["value"] == 0.4
        assert SCORES["group_accuracy"]["value"] == 0.8
        assert SCORES["macro_recall"]["value"] == pytest.approx((0.5 + 1 + 0 + 0) / 4)
        assert SCORES["group_macro_recall"]["value"] == pytest.approx((0.5 + 1 + 1) / 3)
        assert SCORES["macro_f1"] == pytest.approx((0.5 + 2 / 3 + 0 + 0) / 4)

    def test_a_label_has_recall_of_its_rows_and_precision_of_its_answers(self) -> None:
        product, refund = SCORES["labels"]["product"], SCORES["labels"]["refund"]
        assert (product["recall"]["n"], product["recall"]["value"]) == (2, 0.5)
        assert (product["precision"]["n"], product["precision"]["value"], product["f1"]) == (2, 0.5, 0.5)
        assert (refund["recall"]["value"], refund["precision"]["n"], refund["f1"]) == (0.0, 0, 0.0)

    def test_a_group_knows_how_often_its_exact_label_is_found(self) -> None:
        assert SCORES["groups"]["help"]["recall"]["value"] == 1.0
        assert SCORES["groups"]["help"]["label_accuracy"]["value"] == 0.0

    def test_abstaining_tells_what_is_answered_and_who_is_wrong_and_sure(self) -> None:
        abstain = SCORES["abstain"]
        assert (abstain["answered"]["value"], abstain["accuracy"]["n"]) == (0.6, 3)
        assert abstain["accuracy"]["value"] == pytest.approx(1 / 3)
        assert abstain["wrong_and_sure"]["value"] == 0.4

    def test_a_group_may_ask_for_more_than_the_rest(self) -> None:
        found = quality(JUDGED, 0.5, {"media": 0.75}, np.random.default_rng(0))["abstain"]
        assert (found["answered"]["value"], found["wrong_and_sure"]["value"]) == (0.4, 0.2)  # "lamp" as media, at 0.7

    def test_the_confusion_has_the_truth_in_rows(self) -> None:
        matrix = SCORES["confusion"]["truth_by_answer"]
        assert matrix == [[1, 1, 0, 0], [0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0]]
        assert SCORES["group_confusion"]["truth_by_answer"] == [[1, 1, 0], [0, 1, 0], [0, 0, 2]]

    def test_the_surest_mistakes_come_first(self) -> None:
        found = mistakes(JUDGED, labelled(ROWS))
        assert [each["query"] for each in found] == ["money back", "i need a lamp for my desk", "where is it"]
        assert found[0] == {"query": "money back", "label": "refund", "answer": "status", "confidence": 0.8}


def test_segments_are_by_source_style_and_length() -> None:
    found = segment_scores(JUDGED, labelled(ROWS))
    assert {kind: {name: each["n"] for name, each in named.items()} for kind, named in found.items()} == {
        "source": {"a": 2, "b": 3},
        "style": {"keyword": 3, "sentence": 2},
        "length": {"1 word": 1, "2-3 words": 3, "7-10 words": 1},
    }
    assert found["source"]["b"]["group_recall"]["help"]["n"] == 2
    assert found["style"]["sentence"]["accuracy"]["value"] == 0.0


class TestFalseRedirects:
    JUDGED = judge(
        ["product"] * 5 + ["status"] * 4,
        [
            *[sure("product"), sure("product"), sure("status", 0.91), sure("media", 0.7), sure("product", 0.4)],
            *[sure("status", 0.94), sure("status", 0.91), sure("refund", 0.52), sure("product")],
        ],
    )

    SURE = JUDGED.is_sure(0.5, {"help": 0.92})

    def test_as_shipped_are_the_thresholds_of_the_model(self) -> None:
        found = false_redirects(self.JUDGED, "product", [], 0.5, self.SURE)["settings"]["as shipped"]
        assert found["to"] == {"media": 1, "help": 1}  # 0.7, and 0.91 with 0.03 of the other help label
        assert found["recall"]["help"]["value"] == 0.5

    def test_a_product_query_counts_when_another_group_reaches_its_threshold(self) -> None:
        found = false_redirects(self.JUDGED, "product", [0.5, 0.8, 0.95], 0.5, self.SURE)["settings"]
        assert [found[name]["false_redirects"]["value"] for name in ("0.5", "0.8", "0.95")] == [0.4, 0.2, 0.0]
        assert found["0.5"]["to"] == {"media": 1, "help": 1}
        assert found["0.8"]["recall"]["help"]["value"] == 0.5

    def test_thresholds_can_be_the_highest_that_keep_a_recall(self) -> None:
        # Confidence of the group: 0.94 and 0.91 with a third of the rest for the other help label.
        kept = false_redirects(self.JUDGED, "product", [], 0.5, self.SURE)["settings"]["keeps 50% of each"]
        assert kept["thresholds"] == {"media": 0.0, "help": 0.94}
        assert kept["recall"]["help"]["value"] == 0.5
        assert kept["to"] == {"media": 1, "help": 1}  # 0.91 + 0.03 reaches it too

    def test_one_group_can_be_kept_and_the_others_as_strict_as_a_limit_asks_for(self) -> None:
        judged = judge(
            ["product", "product", "status", "status"],
            [sure("product"), sure("media", 0.7), sure("status", 0.94), sure("status", 0.91)],
        )
        settings = false_redirects(judged, "product", [], 0.5, judged.is_sure(0.5, {}))["settings"]
        found = settings["keeps 50% of help, 0.5% in all"]

        assert found["thresholds"] == {"help": settings["keeps 50% of each"]["thresholds"]["help"], "media": ANY}
        assert found["thresholds"]["media"] == pytest.approx(0.7, abs=0.002)
        assert found["false_redirects"]["value"] == 0
        assert found["recall"]["help"]["value"] == 0.5

    def test_a_limit_that_no_threshold_of_the_others_meets_is_left_out(self) -> None:
        settings = false_redirects(self.JUDGED, "product", [], 0.5, self.SURE)["settings"]
        assert list(settings) == ["keeps 50% of each", "as shipped"]

    def test_a_recall_that_no_threshold_keeps_needs_none(self) -> None:
        assert highest_threshold(self.JUDGED, "help", 0.75) > 0
        assert highest_threshold(self.JUDGED, "help", 0.76) == 0.0
        assert highest_threshold(self.JUDGED, "media", 0.5) == 0.0  # no rows


class TestMixes:
    # Three products and one help query; help is always right, a product with 2 of 3.
    JUDGED = judge(
        ["product", "product", "product", "status"],
        [sure("product", 0.9), sure("product", 0.9), sure("status", 0.9), sure("status", 0.9)],
    )

    def test_rows_are_weighted_to_the_mix_and_labels_without_rows_are_stood_for_by_their_group(self) -> None:
        weights = importance(self.JUDGED, np.array([0.5, 0.0, 0.3, 0.2]))
        assert weights is not None
        assert weights.tolist() == pytest.approx([0.5 * 4 / 3] * 3 + [0.5 * 4])
        assert weights.mean() == pytest.approx(1)

    def test_a_mix_with_a_group_that_has_no_rows_can_not_be_judged(self) -> None:
        assert importance(self.JUDGED, np.array([0.4, 0.2, 0.3, 0.1])) is None
        training = np.array([0.4, 0.3, 0.2, 0.1])
        assert mix_scores(self.JUDGED, training, {"shop": training})["shop"] is None

    def test_accuracy_is_that_of_the_mix(self) -> None:
        training = np.array([0.25] * 4)
        found = mix_scores(self.JUDGED, training, {"half": np.array([0.5, 1e-9, 0.5, 1e-9])})
        assert found["as is"]["uncorrected"]["accuracy"] == 0.75
        assert found["as is"]["uncorrected"]["ece"] == pytest.approx(0.15)
        assert found["as is"]["effective_n"] == 4
        assert found["half"] is None  # media has a share, however small, and no rows

    def test_correcting_for_the_mix_mends_confidence(self) -> None:
        """Two kinds of queries whose answers are right for an even mix, where product is nine times as frequent."""
        first, second = [0.9, 0.0, 0.1, 0.0], [0.4, 0.0, 0.6, 0.0]
        rows = [*[first] * 324, *[second] * 576, *[first] * 4, *[second] * 96]
        judged = judge(["product"] * 900 + ["status"] * 100, rows)
        own = mix_scores(judged, np.array([0.5, 1e-9, 0.5, 1e-9]), {})["as is"]
        # Product 324 of 328 times right at 0.9, help 96 of 672 times at 0.6.
        assert own["uncorrected"]["ece"] == pytest.approx(0.328 * (324 / 328 - 0.9) + 0.672 * (0.6 - 96 / 672))
        assert own["corrected"]["ece"] < 0.01
        assert own["corrected"]["accuracy"] == 0.9


class TestOutOfScope:
    INSIDE = np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.4, 0.6]])
    OUTSIDE = np.array([[0.65, 0.35], [0.55, 0.45]])

    def test_it_is_told_by_low_confidence(self) -> None:
        found = out_of_scope(self.INSIDE, np.array([0, 1, 0, 1]), self.OUTSIDE)
        assert (found["in_scope"], found["out_of_scope"]) == (4, 2)
        assert found["auroc"] == 7 / 8  # of eight pairs only 0.6 and 0.65 are in the wrong order
        at = found["at_0.95_in_scope_accuracy"]
        assert (at["threshold"], at["in_scope_accuracy"]["value"], at["recall"]["value"]) == (0.6, 1.0, 0.5)

    def test_wrong_answers_in_scope_may_be_more_than_any_threshold_can_spare(self) -> None:
        found = out_of_scope(self.INSIDE, np.array([1, 1, 0, 1]), self.OUTSIDE)
        assert found["in_scope_accuracy"]["value"] == 0.75
        assert found["at_0.95_in_scope_accuracy"] is None

    def test_the_curve_runs_from_refusing_nothing_to_refusing_all(self) -> None:
        curve = out_of_scope(self.INSIDE, np.array([0, 1, 0, 1]), self.OUTSIDE)["curve"]
        assert [curve[0][name]["value"] for name in ("in_scope_accuracy", "recall")] == [1.0, 0.0]
        assert [curve[-1][name]["value"] for name in ("in_scope_accuracy", "recall")] == [0.0, 1.0]
