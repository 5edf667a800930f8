"""Label shares other than training's: the mixes a model is judged under, and what its confidence becomes there.

A model that saw 30 % help in training says 0.90 where 0.47 would be right in a shop with 4 %. When only the shares of
the labels differ and not what each label's queries look like, Bayes' rule puts it right: p'(y|x) ∝ p(y|x)·π'(y)/π(y)
(Saerens, Latinne & Decaestecker, 2002).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from app.bundle import Label
from models.training.scores import Floats

UNIFORM, ESTIMATED = "uniform", "estimated"
# A shop's search box: what shoppers type are mostly products, and hardly anyone asks it for help.
HELP, HELP_SHARE = "help", 0.04
LEAST_SHARE = 1e-5


class PriorsError(ValueError):
    """Shares that can't be a mix of this model's labels; the message names the label or group."""


class Estimate(NamedTuple):
    shares: Floats  # [labels]
    rounds: int
    has_converged: bool


def training_priors(priors: Mapping[str, float], labels: Sequence[Label]) -> Floats:
    """The shares [labels] that the model was taught. Raises ``PriorsError`` for one that is 0: it can't be undone."""
    shares = np.array([priors[label.name] for label in labels], np.float64)
    if nothing := [label.name for label, share in zip(labels, shares, strict=True) if share <= 0]:
        raise PriorsError(f"the model's label_priors are 0 for {', '.join(nothing)}: confidence can't be reweighted")
    result: Floats = shares / shares.sum()
    return result


def read_priors(wanted: str, labels: Sequence[Label], training: Floats) -> Floats:
    """The shares [labels] in a JSON object, a file of one, or the word ``uniform`` (every label alike).

    The object has a share for every label, or for every group, whose labels then keep training's proportions; shares
    are scaled to add up to 1, as in serving. Raises ``PriorsError`` for anything else.
    """
    if wanted == UNIFORM:
        return np.full(len(labels), 1 / len(labels))
    try:
        text = wanted if wanted.lstrip().startswith("{") else Path(wanted).read_text(encoding="utf-8")
        given = json.loads(text)
    except (OSError, ValueError) as error:
        raise PriorsError(f"priors {wanted!r}: neither {UNIFORM!r}, a JSON object nor a file of one: {error}") from None
    if not isinstance(given, dict) or not all(_is_share(value) for value in given.values()):
        raise PriorsError(f"priors: a JSON object of names and shares over 0 is needed, got {given!r}")
    total = sum(given.values())
    if set(given) == {label.name for label in labels}:
        return np.array([given[label.name] / total for label in labels])
    if set(given) == {label.group for label in labels}:
        return from_groups({name: value / total for name, value in given.items()}, labels, training)
    names = [label.name for label in labels]
    raise PriorsError(
        f"priors: name every label ({', '.join(names)}) or every group ({', '.join(_groups(labels))}); "
        f"got {', '.join(given)}"
    )


def from_groups(shares: Mapping[str, float], labels: Sequence[Label], proportions: Floats) -> Floats:
    """Shares [labels] that give each group its own of ``shares``, split over its labels as in ``proportions``."""
    totals = {
        group: sum(part for label, part in zip(labels, proportions, strict=True) if label.group == group)
        for group in _groups(labels)
    }
    parts = zip(labels, proportions, strict=True)
    return np.array([shares[label.group] * part / (totals[label.group] or 1) for label, part in parts])


def standard_mixes(labels: Sequence[Label], training: Floats) -> dict[str, Floats]:
    """``shop`` (4 % help, the other groups in training's proportions) and ``uniform`` (every group alike)."""
    groups = _groups(labels)
    mixes = {"uniform": from_groups(dict.fromkeys(groups, 1 / len(groups)), labels, training)}
    if HELP in groups and len(groups) > 1:
        of = {
            group: sum(part for label, part in zip(labels, training, strict=True) if label.group == group)
            for group in groups
        }
        rest = sum(share for group, share in of.items() if group != HELP)
        shop = {group: (1 - HELP_SHARE) * share / rest for group, share in of.items()} | {HELP: HELP_SHARE}
        mixes = {"shop": from_groups(shop, labels, training)} | mixes
    return mixes


def reweight(probabilities: Floats, training: Floats, shares: Floats) -> Floats:
    """Probabilities [n, labels] as they are where the labels' shares are ``shares`` instead of ``training``."""
    weighted = probabilities.astype(np.float64) * (shares / training)
    result: Floats = weighted / weighted.sum(axis=1, keepdims=True)
    return result


def estimate(
    probabilities: Floats, counts: Floats, training: Floats, *, tolerance: float = 1e-7, most: int = 2000
) -> Estimate:
    """The labels' shares among unlabelled queries, by expectation maximisation (Saerens et al., 2002).

    ``probabilities`` [n, labels] of distinct queries, each seen ``counts`` [n] times. Each round reweights the answers
    by the shares so far and takes their mean for the next. The likelihood rises every round and has one maximum. It is
    as good as the probabilities: they must be calibrated on training's mix. No share is under ``LEAST_SHARE``: one of 0
    would forbid its label for good.
    """
    shares, rounds, moved = training, 0, math.inf
    while moved >= tolerance and rounds < most:
        new: Floats = np.average(reweight(probabilities, training, shares), axis=0, weights=counts)
        moved, shares = float(np.abs(new - shares).max()), new
        rounds += 1
    least = np.maximum(shares, LEAST_SHARE)
    return Estimate(least / least.sum(), rounds, moved < tolerance)


def _groups(labels: Sequence[Label]) -> list[str]:
    return list(dict.fromkeys(label.group for label in labels))


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf
