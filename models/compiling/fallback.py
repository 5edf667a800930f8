"""Making the fallback: what the float32 reference says of many texts, learned by a small linear student."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from app.fallback import FallbackManifest, write_fallback
from app.student import FEATURES, Scorer, Student
from models.compiling.agreement import Agreement, agreement, demand
from models.compiling.order import CompileError, LabelledQuery, Order, Queries
from models.compiling.phrases import random_phrases, vocabulary
from models.compiling.prefixes import random_prefixes
from models.compiling.reference import Reference
from models.compiling.source import Source
from models.compiling.student import L2, STEPS, teach
from models.compiling.summary import Summary
from models.training.confidence import REDIRECT_COST, fit_abstain_threshold, fit_group_thresholds, fit_temperature
from models.training.scores import Floats, Ints, softmax

BUCKETS = 1 << 17  # 1.2 MB for nine labels
PHRASES = 120_000
# How much each kind of text counts, as a whole.
QUERIES_SHARE, PREFIXES_SHARE, WORDS_SHARE, PHRASES_SHARE = 1.0, 0.3, 0.2, 0.4


class Confidence(NamedTuple):
    """How sure a student may be, and has to be."""

    temperature: float
    abstain_threshold: float
    group_thresholds: dict[str, float]


class FallbackMaker:
    """Teaches a student the reference's answers, calibrates it on labelled queries and compares it with float32."""

    def __init__(self, source: Source, order: Order, reference: Reference, summary: Summary) -> None:
        self._source, self._order, self._reference, self._summary = source, order, reference, summary
        of = [label.group for label in source.labels]
        self._groups = list(dict.fromkeys(of))
        self._membership = np.array([[name == group for group in self._groups] for name in of], np.float32)

    def make(self, directory: Path, queries: Queries) -> Agreement:
        """Fill ``directory``, which is emptied first.

        Raises ``CompileError`` when no labelled query is held out or too few labels agree.
        """
        if not queries.labelled:
            raise CompileError("no held-out query has a label of the model's: nothing to calibrate the fallback on")
        shutil.rmtree(directory, ignore_errors=True)
        student = self._teach(queries)
        confidence = self._calibrate(student, queries.labelled)
        found, measured = self._compare(student, confidence.temperature, queries.holdout)
        manifest = FallbackManifest(
            features=FEATURES,
            **confidence._asdict(),
            agreement=measured,
            options={"buckets": BUCKETS, "phrases": PHRASES, "l2": L2, "steps": STEPS, "seed": self._order.seed},
        )
        write_fallback(directory, student, manifest)
        return found

    def _teach(self, queries: Queries) -> Student:
        words = vocabulary(self._source.tokenizer)
        phrases = random_phrases(words, PHRASES, self._order.seed) if words else []
        prefixes = random_prefixes(queries.calibration, self._order.seed, max_tokens=self._source.max_tokens)
        held_out = set(queries.holdout)  # which a prefix or a random phrase may happen to be
        texts: list[str] = []
        weights: list[float] = []
        for share, kind in (
            (QUERIES_SHARE, queries.calibration),
            (PREFIXES_SHARE, prefixes),
            (WORDS_SHARE, words),
            (PHRASES_SHARE, phrases),
        ):
            taken = [text for text in dict.fromkeys(kind) if text not in held_out]
            texts += taken
            weights += [share / len(taken) for _ in taken]
        with self._summary.step(f"asking float32 about {len(texts)} queries, prefixes, words and phrases"):
            answers = self._reference.probabilities(texts)
        with self._summary.step("teaching the fallback"):
            return teach(texts, answers, np.array(weights), buckets=BUCKETS)

    def _calibrate(self, student: Student, labelled: Sequence[LabelledQuery]) -> Confidence:
        """As training finds the model's own, but all of it on the same rows."""
        logits = _logits(student, [query.text for query in labelled])
        truth = np.array([self._reference.labels.index(query.label) for query in labelled])
        temperature = round(fit_temperature(logits, truth), 4)
        probabilities = softmax(logits, temperature)
        found = Confidence(
            temperature,
            round(fit_abstain_threshold(probabilities, truth), 4),
            self._group_thresholds(probabilities @ self._membership, self._membership[truth].argmax(axis=1)),
        )
        self._summary.note(f"on {len(labelled)} labelled queries: {found}")
        return found

    def _group_thresholds(self, probabilities: Floats, truth: Ints) -> dict[str, float]:
        """For the groups for which the model has one; the group without is home."""
        without = [group for group in self._groups if group not in self._source.group_thresholds]
        if len(without) != 1:  # the model was trained without a home
            return {}
        if lacking := [group for at, group in enumerate(self._groups) if at not in truth]:
            raise CompileError(f"no held-out query of {', '.join(lacking)}: nothing to fit group thresholds on")
        found = fit_group_thresholds(
            probabilities, truth, home=self._groups.index(without[0]), redirect_cost=REDIRECT_COST
        )
        return {self._groups[at]: round(threshold, 6) for at, threshold in found.items()}

    def _compare(
        self, student: Student, temperature: float, texts: Sequence[str]
    ) -> tuple[Agreement, dict[str, float]]:
        with self._summary.step(f"comparing with float32 on {len(texts)} held-out queries"):
            expected = self._reference.probabilities(texts)
            actual = softmax(_logits(student, texts), temperature).astype(np.float32)
            found = agreement(texts, self._reference.labels, expected, actual)
        self._summary.agreement(found)
        demand(found, self._order.min_agreement)
        groups = float(np.mean((expected @ self._membership).argmax(1) == (actual @ self._membership).argmax(1)))
        self._summary.note(f"{groups:.2%} of the groups agree")
        return found, {"queries": found.queries, "labels": found.labels, "groups": groups}


def _logits(student: Student, texts: Sequence[str]) -> Floats:
    """[texts, labels]."""
    scorer = Scorer(student)
    return np.concatenate([scorer.logits(text) for text in texts])
