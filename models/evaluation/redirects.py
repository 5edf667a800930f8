"""False redirects: shoppers who look for a product and are sent to another page. What a threshold costs and saves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.evaluation.intervals import share_of
from models.evaluation.judged import Judged

LIMIT = 0.005  # of the home rows: what a shop may lose to other pages
STRICTER = np.arange(0.5, 1.0, 0.001)  # thresholds that are tried for what still meets a limit


def false_redirects(
    judged: Judged, home: str, thresholds: Sequence[float], keep_recall: float, is_sure: NDArray[np.bool_]
) -> dict[str, Any]:
    """What happens to the rows of group ``home`` when a page switches on a confident enough other group.

    A row is redirected when another group has the largest confidence and that reaches the group's threshold. The ways
    of setting them: each of ``thresholds`` for all groups; for each group the highest that still keeps ``keep_recall``
    of its own rows; and this for one group, with the others as strict as it takes to redirect no more than ``LIMIT``
    of the home rows in all, where that can be met. "as shipped" redirects where the model ``is_sure`` [n], by
    thresholds of its own.
    """
    others = [group for group in judged.groups if group != home]
    kept = {group: highest_threshold(judged, group, keep_recall) for group in others}
    settings = {f"keeps {keep_recall:.0%} of each": kept}
    settings |= {f"{threshold:g}": dict.fromkeys(others, threshold) for threshold in thresholds}
    found = {name: _at(judged, home, each) for name, each in settings.items()}
    for group in others:
        for stricter in STRICTER.tolist():
            at_most = _at(judged, home, dict.fromkeys(others, round(stricter, 3)) | {group: kept[group]})
            if at_most["false_redirects"]["value"] <= LIMIT:
                found[f"keeps {keep_recall:.0%} of {group}, {LIMIT:.1%} in all"] = at_most
                break
    found["as shipped"] = _sent(judged, home, is_sure)
    return {"home": home, "settings": found}


def highest_threshold(judged: Judged, group: str, keep_recall: float) -> float:
    """The highest confidence to ask for that keeps ``keep_recall`` of the group's rows, cut to four digits.

    0 where the group's recall is lower even without a threshold, or it has no rows.
    """
    at = judged.groups.index(group)
    own = judged.group_truth == at
    reached = np.where(judged.group_predicted[own] == at, judged.group_probabilities[own, at], 0.0)
    if not len(reached):
        return 0.0
    needed = max(1, math.ceil(keep_recall * len(reached) - 1e-9))
    return math.floor(float(np.sort(reached)[-needed]) * 1e4) / 1e4


def _at(judged: Judged, home: str, thresholds: dict[str, float]) -> dict[str, Any]:
    # The home page is where everything else stays, so it has no threshold.
    needed = np.array([thresholds.get(group, 0.0) for group in judged.groups])
    reached = judged.group_probabilities.max(axis=1) >= needed[judged.group_predicted]
    return {"thresholds": thresholds} | _sent(judged, home, reached)


def _sent(judged: Judged, home: str, reached: NDArray[np.bool_]) -> dict[str, Any]:
    """What a setting costs and saves; ``reached`` [n] are the rows whose answer is confident enough."""
    at_home = judged.group_truth == judged.groups.index(home)
    is_sent = reached & (judged.group_predicted != judged.groups.index(home))
    places = {group: at for at, group in enumerate(judged.groups) if group != home}
    return {
        "false_redirects": share_of(is_sent[at_home]),
        "to": {group: int(np.sum(is_sent & at_home & (judged.group_predicted == at))) for group, at in places.items()},
        "recall": {
            group: share_of((is_sent & (judged.group_predicted == at))[judged.group_truth == at])
            for group, at in places.items()
            if np.any(judged.group_truth == at)
        },
    }
