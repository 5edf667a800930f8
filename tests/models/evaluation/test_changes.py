"""What changes from one model to the next, and whether it may."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from app.bundle import Label
from models.compare import compare
from models.data.table import Row
from models.evaluation.changes import Answers, differing_labels, shared_labels, traffic_changes
from models.evaluation.rule import Rule
from tests.fake_subjects import LABELS, fake_subject, labelled, sure

QUERIES = {"desk": 6, "dune": 3, "parcel": 1}
A = {"desk": sure("product"), "dune": sure("product", 0.6), "parcel": sure("status", 0.9)}
BETTER = A | {"dune": sure("media", 0.8)}
ROWS = [Row("desk", "product", source="x"), Row("dune", "media", source="y"), Row("parcel", "status", source="y")]
# A label more than LABELS, and one of them in another group.
OTHER = [*LABELS[1:], Label(name="product", definition="", group="shop"), Label(name="new", definition="", group="new")]


def answers(given: Mapping[str, Sequence[float]], labels: Sequence[Label] = LABELS) -> Answers:
    return Answers(fake_subject(given, labels=labels), np.array([given[query] for query in QUERIES]))


class TestTraffic:
    def test_equal_answers_change_nothing(self) -> None:
        found = traffic_changes(QUERIES, answers(A), answers(A))
        assert (found["queries"], found["distinct"]) == (10, 3)
        assert (found["intent_changes"], found["group_changes"], found["most_frequent"]) == (0, 0, [])

    def test_a_query_counts_as_often_as_it_came_and_a_label_may_change_inside_its_group(self) -> None:
        b = A | {"dune": sure("media", 0.8), "parcel": sure("refund", 0.95)}
        found = traffic_changes(QUERIES, answers(A), answers(b))
        assert (found["intent_changes"], found["group_changes"]) == (0.4, 0.3)
        assert found["group_moves"] == {"product → media": 3}
        assert [each["query"] for each in found["most_frequent"]] == ["dune", "parcel"]
        assert [each["query"] for each in found["most_confident"]] == ["parcel", "dune"]
        dune = found["most_frequent"][0]
        assert dune["a"] == {"intent": "product", "group": "product", "confidence": pytest.approx(0.6)}
        assert dune["b"] == {"intent": "media", "group": "media", "confidence": pytest.approx(0.8)}
        assert dune["margin"] == pytest.approx(0.6 - 0.4 / 3)
        assert found["largest_margin"] == pytest.approx(0.9 - 0.1 / 3)

    def test_labels_are_compared_by_name_whatever_their_order(self) -> None:
        turned = LABELS[::-1]
        b = {query: row[::-1] for query, row in A.items()}
        assert traffic_changes(QUERIES, answers(A), answers(b, turned))["intent_changes"] == 0


class TestLabels:
    def test_what_one_lacks_or_groups_otherwise_is_said(self) -> None:
        assert differing_labels(fake_subject({}), fake_subject({})) == []
        assert differing_labels(fake_subject({}), fake_subject({}, labels=OTHER)) == [
            "A lacks B's label new",
            "product is in group product of A, in shop of B",
        ]
        assert differing_labels(fake_subject({}), fake_subject({}, labels=LABELS[1:])) == ["B lacks A's label product"]

    def test_rows_may_have_the_labels_that_both_have(self) -> None:
        shared = shared_labels(fake_subject({}), fake_subject({}, labels=OTHER))
        assert shared == ["product", "media", "status", "refund"]


class TestRule:
    RULE = Rule(max_drop=0.003, max_changed=0.02)

    @staticmethod
    def report(low: float | None, changed: float) -> dict[str, Any]:
        labelled = {} if low is None else {"labelled": {"accuracy": {"low": low}}}
        return {"traffic": {"group_changes": changed}} | labelled

    @pytest.mark.parametrize(
        ("low", "changed", "reasons"),
        [
            (-0.003, 0.02, 0),
            (-0.0031, 0.02, 1),
            (-0.003, 0.021, 1),
            (-0.0031, 0.021, 2),
            (0.01, 0.0, 0),
            (None, 0.02, 0),
            (None, 0.021, 1),
        ],
    )
    def test_each_limit_may_be_reached_and_not_passed(self, low: float | None, changed: float, reasons: int) -> None:
        assert len(self.RULE.reasons(self.report(low, changed))) == reasons

    def test_it_can_be_read(self) -> None:
        assert "under −0.003, or when more than 0.02 of the traffic changes its group" in str(self.RULE)


class TestCompare:
    def compare(self, b: Mapping[str, Sequence[float]], rule: Rule, **files: Any) -> dict[str, Any]:
        given = {"labelled": labelled(ROWS), "traffic": QUERIES} | files
        subjects = fake_subject(A, name="old"), fake_subject(b, name="new")
        return compare(*subjects, given["labelled"], given["traffic"], rule, seed=1)

    def test_a_better_model_that_changes_little_is_go(self) -> None:
        found = self.compare(BETTER, Rule(max_drop=0.003, max_changed=0.3))
        assert (found["a"], found["b"], found["verdict"], found["reasons"]) == ("old", "new", "go", [])
        overall = found["labelled"]["accuracy"]
        assert (overall["a"], overall["b"]) == (pytest.approx(2 / 3), 1.0)
        assert found["labelled"]["labels"]["media"]["difference"] == 1.0
        assert found["labelled"]["segments"]["source"]["y"]["difference"] == 0.5
        assert found["labelled"]["group_macro_recall"]["difference"] == pytest.approx(1 / 3)

    def test_a_better_model_that_changes_too_much_is_no_go(self) -> None:
        found = self.compare(BETTER, Rule(max_drop=0.003, max_changed=0.29))
        assert found["verdict"] == "no-go"
        assert found["reasons"] == ["0.3000 of the traffic changes its group, 0.29 is allowed"]

    def test_a_worse_model_is_no_go(self) -> None:
        found = self.compare(A | {"desk": sure("media")}, Rule(max_drop=0.003, max_changed=1.0))
        assert found["verdict"] == "no-go"
        assert found["reasons"][0].startswith("accuracy may drop by ")

    def test_without_traffic_the_labelled_texts_stand_for_it(self) -> None:
        found = self.compare(BETTER, Rule(0.003, 0.34), traffic=None)
        assert (found["traffic"]["queries"], found["traffic"]["group_changes"]) == (3, pytest.approx(1 / 3))

    def test_without_labels_only_the_changes_count(self) -> None:
        found = self.compare(A, Rule(0.003, 0.0), labelled=None)
        assert "labelled" not in found
        assert found["verdict"] == "go"

    def test_a_model_with_its_labels_in_another_order_is_the_same_model(self) -> None:
        turned = fake_subject({query: row[::-1] for query, row in A.items()}, labels=LABELS[::-1])
        found = compare(fake_subject(A), turned, labelled(ROWS), None, Rule(0, 0), seed=1)
        assert found["verdict"] == "go"
        assert found["labelled"]["accuracy"]["difference"] == 0
