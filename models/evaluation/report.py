"""The whole of ``query-intent evaluate``: a model and its rows in, one document out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.priors import group_thresholds
from models.evaluation.asking import ask
from models.evaluation.judged import Judged
from models.evaluation.labelled import Labelled
from models.evaluation.mixes import mix_scores
from models.evaluation.out_of_scope import out_of_scope
from models.evaluation.perturbed import perturbed_scores
from models.evaluation.priors import ESTIMATED, PriorsError, estimate, read_priors, reweight, standard_mixes
from models.evaluation.quality import mistakes, quality, segment_scores
from models.evaluation.redirects import false_redirects
from models.evaluation.subject import Subject
from models.training.scores import Floats


@dataclass(frozen=True, slots=True)
class Request:
    """What to find out, checked. ``priors`` is what ``read_priors`` takes, or ``ESTIMATED``."""

    thresholds: Sequence[float]
    keep_recall: float
    home: str | None
    out_of_scope_label: str | None = None
    perturb: Sequence[str] = ()
    priors: str | None = None
    traffic: Mapping[str, int] | None = None  # unlabelled queries and how often each came
    seed: int = 0


def evaluate(subject: Subject, labelled: Labelled, training: Floats, request: Request) -> tuple[dict[str, Any], Judged]:
    """The report, and the judged rows that its pictures are drawn from. ``training`` [labels] are the model's priors.

    Raises ``PriorsError``; what ``Subject.load`` raises comes through.
    """
    mixes = standard_mixes(subject.labels, training)
    given = None
    if request.priors not in (None, ESTIMATED):
        given = mixes["given"] = read_priors(str(request.priors), subject.labels, training)
    elif request.priors == ESTIMATED and not request.traffic:
        raise PriorsError(f"priors {ESTIMATED!r} needs the unlabelled queries to estimate them from")

    answer = subject.load()
    chance = np.random.default_rng(request.seed)
    report: dict[str, Any] = {}
    if request.traffic:
        report["estimated_priors"] = _estimated(subject, answer, request.traffic, training)
        mixes[ESTIMATED] = np.array(list(report["estimated_priors"]["labels"].values()))
        given = mixes[ESTIMATED] if request.priors == ESTIMATED else given

    def correct(probabilities: Floats) -> Floats:
        return probabilities if given is None else reweight(probabilities, training, given)

    asked = ask(answer, [*labelled.texts, *labelled.out_of_scope], "asking queries")
    raw = Judged(asked[: len(labelled)], labelled.truth, subject.names, subject.groups, subject.group_of)
    judged = raw.given(correct(raw.probabilities))
    thresholds = subject.group_thresholds
    if given is not None:
        before, after = (dict(zip(subject.names, shares.tolist(), strict=True)) for shares in (training, given))
        groups = {label.name: label.group for label in subject.labels}
        thresholds = group_thresholds(thresholds, groups, after, training=before)
    is_sure = judged.is_sure(subject.abstain_threshold, thresholds)
    report |= {
        "priors": None if given is None else dict(zip(subject.names, given.tolist(), strict=True)),
        "scores": quality(judged, subject.abstain_threshold, thresholds, chance),
        "segments": segment_scores(judged, labelled),
        "mixes": mix_scores(raw, training, mixes),
        "mistakes": mistakes(judged, labelled),
    }
    if request.home is not None and len(subject.groups) > 1:
        report["redirects"] = false_redirects(
            judged,
            request.home,
            request.thresholds,
            request.keep_recall,
            is_sure,
        )
    if request.out_of_scope_label is not None:
        report["out_of_scope"] = _out_of_scope(judged, correct(asked[len(labelled) :]), request.out_of_scope_label)
    for kind in request.perturb:
        report["segments"].setdefault("perturbed", {})[kind] = perturbed_scores(
            kind, labelled, judged, answer, correct, max_tokens=subject.max_tokens, seed=request.seed
        )
    return report, judged


def _estimated(subject: Subject, answer: Any, traffic: Mapping[str, int], training: Floats) -> dict[str, Any]:
    counts = np.array(list(traffic.values()), np.float64)
    found = estimate(ask(answer, list(traffic), "asking unlabelled queries"), counts, training)
    groups = np.bincount(subject.group_of, weights=found.shares, minlength=len(subject.groups))
    return {
        "queries": int(counts.sum()),
        "distinct": len(traffic),
        "rounds": found.rounds,
        "has_converged": found.has_converged,
        "labels": dict(zip(subject.names, found.shares.tolist(), strict=True)),
        "groups": dict(zip(subject.groups, groups.tolist(), strict=True)),
    }


def _out_of_scope(judged: Judged, outside: Floats, label: str) -> dict[str, Any]:
    """A model may have an intent for the rest, or lack it; then its rows were kept apart."""
    if label not in judged.labels:
        return out_of_scope(judged.probabilities, judged.truth, outside)
    at = judged.labels.index(label)
    is_outside = judged.truth == at
    intents = np.delete(judged.probabilities, at, axis=1)
    truth = judged.truth - (judged.truth > at)
    return out_of_scope(intents[~is_outside], truth[~is_outside], intents[is_outside])
