"""A model whose answers the test writes down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from app.bundle import Label
from models.data.table import Row
from models.evaluation.judged import Judged
from models.evaluation.labelled import Labelled
from models.evaluation.subject import Subject
from models.training.scores import Floats

GROUPS = {"product": "product", "media": "media", "status": "help", "refund": "help"}
LABELS = [Label(name=name, definition="", group=group) for name, group in GROUPS.items()]
PRIORS = {"product": 0.4, "media": 0.3, "status": 0.2, "refund": 0.1}


def sure(label: str, confidence: float = 0.97, labels: Sequence[Label] = LABELS) -> list[float]:
    """Probabilities with ``confidence`` for one label, and the rest shared alike."""
    rest = (1 - confidence) / (len(labels) - 1)
    return [confidence if each.name == label else rest for each in labels]


def fake_subject(
    answers: Mapping[str, Sequence[float]], *, name: str = "fake", labels: Sequence[Label] = LABELS
) -> Subject:
    """Answers each text as ``answers`` says; one that isn't there fails the test."""

    def answer(texts: Sequence[str]) -> Floats:
        return np.array([answers[text] for text in texts])

    priors = {label.name: PRIORS.get(label.name, 0.1) for label in labels}
    return Subject(name, list(labels), 32, priors, 0.5, {}, lambda: answer)


def judge(truth: Sequence[str], answers: Sequence[Sequence[float]]) -> Judged:
    names = [label.name for label in LABELS]
    subject = fake_subject({})
    indices = np.array([names.index(label) for label in truth])
    return Judged(np.array(answers), indices, names, subject.groups, subject.group_of)


def labelled(rows: Sequence[Row], out_of_scope: Sequence[str] = ()) -> Labelled:
    names = list(GROUPS)
    return Labelled(list(rows), np.array([names.index(row.label) for row in rows]), list(out_of_scope))
