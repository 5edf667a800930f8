"""What changes for shoppers when B takes A's place: on labelled rows, whose right answer is known, and on traffic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.evaluation.intervals import paired, paired_macro
from models.evaluation.judged import Judged
from models.evaluation.labelled import Labelled
from models.evaluation.subject import Subject
from models.training.scores import Floats

# Changed queries listed by each order.
_SHOWN = 20


@dataclass(frozen=True)
class Answers:
    """One model's answers to queries; ``probabilities`` [queries, labels]."""

    subject: Subject
    probabilities: Floats

    @property
    def intents(self) -> list[str]:
        return [self.subject.names[at] for at in self.probabilities.argmax(axis=1).tolist()]

    @property
    def groups(self) -> list[str]:
        sums = self.probabilities @ np.eye(len(self.subject.groups))[self.subject.group_of]
        return [self.subject.groups[at] for at in sums.argmax(axis=1).tolist()]

    @property
    def confidence(self) -> list[float]:
        highest: list[float] = self.probabilities.max(axis=1).tolist()
        return highest

    def of(self, row: int, intent: str) -> float:
        """The confidence of this intent; 0 for one that the model lacks."""
        names = self.subject.names
        return float(self.probabilities[row, names.index(intent)]) if intent in names else 0.0


def shared_labels(a: Subject, b: Subject) -> list[str]:
    """The labels that both have, in A's order: what labelled rows may have."""
    return [name for name in a.names if name in b.names]


def differing_labels(a: Subject, b: Subject) -> list[str]:
    """In words, the labels that one lacks or that lie in different groups."""
    of_a, of_b = ({label.name: label.group for label in subject.labels} for subject in (a, b))
    lacking = [f"B lacks A's label {name}" for name in of_a if name not in of_b]
    lacking += [f"A lacks B's label {name}" for name in of_b if name not in of_a]
    return lacking + [
        f"{name} is in group {of_a[name]} of A, in {of_b[name]} of B"
        for name in shared_labels(a, b)
        if of_a[name] != of_b[name]
    ]


def judged(subject: Subject, probabilities: Floats, labelled: Labelled, labels: Sequence[str]) -> Judged:
    """``labelled``, whose truth are indices into ``labels``, as this model numbers them."""
    numbers = np.array([subject.names.index(name) for name in labels])
    return Judged(probabilities, numbers[labelled.truth], subject.names, subject.groups, subject.group_of)


def labelled_changes(labelled: Labelled, a: Judged, b: Judged, *, seed: int) -> dict[str, Any]:
    """Paired differences B − A: overall, of each label and of each segment. Both judge the same rows in one order.

    One comparison is tested at 95 %; of twenty labels one may look different by chance.
    """
    chance = np.random.default_rng(seed)
    labels = {
        name: paired(a.is_right[chosen], b.is_right[chosen], chance)
        for name, chosen in ((name, a.truth == at) for at, name in enumerate(a.labels))
        if chosen.any()
    }
    segments = {
        kind: {name: paired(a.is_right[chosen], b.is_right[chosen], chance) for name, chosen in found.items()}
        for kind, found in labelled.segments().items()
    }
    return {
        "n": len(labelled),
        "accuracy": paired(a.is_right, b.is_right, chance),
        "macro_recall": paired_macro(a.is_right, b.is_right, a.truth, chance),
        "group_accuracy": paired(a.group_is_right, b.group_is_right, chance),
        "group_macro_recall": paired_macro(a.group_is_right, b.group_is_right, a.group_truth, chance),
        "labels": labels,
        "segments": segments,
    }


def traffic_changes(queries: Mapping[str, int], a: Answers, b: Answers) -> dict[str, Any]:
    """Shares of the traffic, each distinct query counted as often as it came, and the queries behind them."""
    counts = np.array(list(queries.values()))
    intent_changes = _differ(a.intents, b.intents)
    group_changes = _differ(a.groups, b.groups)
    changed = _changed(list(queries), counts, a, b, np.flatnonzero(intent_changes | group_changes))
    moves: Counter[str] = Counter()
    for each in changed:
        if each["a"]["group"] != each["b"]["group"]:
            moves[f"{each['a']['group']} → {each['b']['group']}"] += each["count"]
    return {
        "queries": int(counts.sum()),
        "distinct": len(counts),
        "intent_changes": _share(intent_changes, counts),
        "group_changes": _share(group_changes, counts),
        "group_moves": dict(moves.most_common()),
        # By how much A preferred its own intent, of the queries whose intent changes.
        "largest_margin": max((each["margin"] for each in changed), default=0.0),
        "most_frequent": sorted(changed, key=lambda each: (-each["count"], -_surest(each)))[:_SHOWN],
        "most_confident": sorted(changed, key=lambda each: -_surest(each))[:_SHOWN],
    }


def _differ(a: Sequence[str], b: Sequence[str]) -> NDArray[np.bool_]:
    # By name, since the labels of A and B may be in different orders.
    return np.array([one != other for one, other in zip(a, b, strict=True)])


def _share(changes: NDArray[np.bool_], counts: NDArray[np.integer[Any]]) -> float:
    return float(counts[changes].sum() / counts.sum())


def _changed(
    queries: Sequence[str], counts: NDArray[np.integer[Any]], a: Answers, b: Answers, rows: NDArray[np.integer[Any]]
) -> list[dict[str, Any]]:
    sides = {name: (answers.intents, answers.groups, answers.confidence) for name, answers in (("a", a), ("b", b))}
    return [
        {
            "query": queries[row],
            "count": int(counts[row]),
            **{
                name: {"intent": intents[row], "group": groups[row], "confidence": confidence[row]}
                for name, (intents, groups, confidence) in sides.items()
            },
            "margin": a.of(row, a.intents[row]) - a.of(row, b.intents[row]),
        }
        for row in rows.tolist()
    ]


def _surest(change: dict[str, Any]) -> float:
    """Both sides must be sure: a change between two guesses tells nothing."""
    return min(float(change["a"]["confidence"]), float(change["b"]["confidence"]))
