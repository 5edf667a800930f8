"""What evaluate and compare show is what queries, labels and groups say, whatever brackets are in them."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from models.evaluation import differences, summary

NAME = "sofa [/b] :gift:"
SHARE = {"value": 0.5, "low": 0.4, "high": 0.6, "n": 2}
MIX = {"ece": 0.1, "group_ece": 0.1, "group_accuracy": 0.5}
PAIR = {"n": 2, "a": 0.5, "b": 0.5, "difference": 0.0, "low": -0.1, "high": 0.1}
EVALUATION: dict[str, Any] = {
    "model": NAME,
    "table": {"path": NAME},
    "notes": [NAME],
    "estimated_priors": {"queries": 2, "groups": {NAME: 1.0}},
    "priors": {NAME: 1.0},
    "scores": {
        "n": 2,
        **dict.fromkeys(("accuracy", "macro_recall", "group_macro_recall"), SHARE),
        "macro_f1": 0.5,
        "ece": 0.1,
        "group_ece": 0.1,
        "groups": {NAME: {"recall": SHARE, "label_accuracy": SHARE}},
        "abstain": {
            "threshold": 0.5,
            "group_thresholds": {NAME: 0.5},
            "answered": SHARE,
            "accuracy": SHARE,
            "wrong_and_sure": SHARE,
        },
        "labels": {NAME: {"f1": None, "recall": SHARE, "precision": SHARE}},
    },
    "segments": {NAME: {NAME: {"n": 2, "accuracy": SHARE, "group_recall": {NAME: SHARE}}, "none": {"n": 0}}},
    "redirects": {
        "home": NAME,
        "settings": {NAME: {"recall": {NAME: SHARE}, "thresholds": {NAME: 0.5}, "false_redirects": SHARE}},
    },
    "mixes": {NAME: {"uncorrected": MIX, "corrected": MIX, "effective_n": 2}, f"{NAME} too": None},
}
CHANGED = {"query": NAME, "count": 2, **{key: {"intent": NAME, "confidence": 0.9} for key in "ab"}}
COMPARISON: dict[str, Any] = {
    **dict.fromkeys(("a", "b", "rule"), NAME),
    **{key: [NAME] for key in ("notes", "reasons")},
    "verdict": "go",
    "labelled": {
        "n": 2,
        **dict.fromkeys(("accuracy", "macro_recall", "group_accuracy", "group_macro_recall"), PAIR),
        "labels": {NAME: PAIR},
        "segments": {NAME: {NAME: PAIR}},
    },
    "traffic": {
        "queries": 3,
        "distinct": 2,
        "intent_changes": 0.5,
        "group_changes": 0.5,
        "group_moves": {NAME: 1},
        **{key: [CHANGED] for key in ("most_frequent", "most_confident")},
    },
}


@pytest.mark.parametrize(
    ("show", "report", "names"), [(summary.show, EVALUATION, 16), (differences.show, COMPARISON, 15)]
)
def test_brackets_and_colons_of_a_name_are_neither_markup_nor_emoji(show: Any, report: Any, names: int) -> None:
    shown = io.StringIO()
    show(report, Console(file=shown, width=300, emoji=False))
    assert shown.getvalue().count(NAME) == names
