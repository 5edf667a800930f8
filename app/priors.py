"""The deployment's label shares: trained on much help, a model overstates it where it is a few per cent of traffic."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path

from app.errors import SettingsError


def read_priors(path: Path, *, training: Mapping[str, float]) -> dict[str, float]:
    """The share of each label in the deployment's traffic, from a JSON object of label and share.

    The shares are scaled to add up to 1. Raises ``SettingsError`` when a label is missing, unknown, or its share is no
    positive number, or when training never saw it, so that nothing is known of it.
    """
    try:
        shares = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"priors {path}: {error.strerror}") from None
    except ValueError as error:
        raise SettingsError(f"priors {path}: not JSON: {error}") from None
    if not isinstance(shares, dict) or set(shares) != set(training):
        raise SettingsError(f"priors {path}: must hold a share for each of {', '.join(training)} and nothing else")
    for label, share in shares.items():
        if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share < math.inf:
            raise SettingsError(f"priors {path}: {label} is {share!r}, not a positive number")
        if training[label] <= 0:
            raise SettingsError(f"priors {path}: {label} has no share in training, so its own can't be corrected")
    total = sum(shares.values())
    return {label: shares[label] / total for label in training}


def group_thresholds(
    thresholds: Mapping[str, float],
    groups: Mapping[str, str],
    deployment: Mapping[str, float],
    *,
    training: Mapping[str, float],
) -> dict[str, float]:
    """Thresholds of groups, fitted on training's shares, as they are for confidences under the deployment's.

    The odds of a group against the rest change by the ratio of its prior odds, so the odds to ask for do too. Left as
    they are, they could never be reached by a group that is rarer now. ``groups`` names each label's group.
    """

    def odds(shares: Mapping[str, float], group: str) -> float:
        inside = sum(share for label, share in shares.items() if groups[label] == group)
        return inside / max(sum(shares.values()) - inside, 1e-12)

    shifted = {}
    for group, threshold in thresholds.items():
        if threshold >= 1:
            shifted[group] = 1.0
            continue
        needed = threshold / (1 - threshold) * odds(deployment, group) / odds(training, group)
        shifted[group] = needed / (1 + needed)
    return shifted


def log_shift(deployment: Mapping[str, float], *, training: Mapping[str, float]) -> list[float]:
    """What to add to each logit for the deployment's shares, in the labels' order.

    Bayes' rule with the likelihood unchanged: p'(y|x) is proportional to p(y|x) · π'(y) / π(y) (Saerens, Latinne and
    Decaestecker 2002, equation 2.4).
    """
    return [math.log(deployment[label] / share) for label, share in training.items()]
