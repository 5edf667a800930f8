"""How sure a number is: intervals of shares, of macro means and of paired differences. 95 % everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest  # type: ignore[import-untyped]

CONFIDENCE = 0.95
RESAMPLES = 10_000
_TAILS = [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]

Interval = dict[str, Any]


def share(hits: int, n: int) -> Interval:
    """``hits`` of ``n`` with Wilson's score interval (Wilson, 1927), which holds for few rows and near 0 and 1 too."""
    if n == 0:
        return {"n": 0, "value": None, "low": None, "high": None}
    low, high = binomtest(hits, n).proportion_ci(CONFIDENCE, method="wilson")
    return {"n": n, "value": hits / n, "low": float(low), "high": float(high)}


def share_of(are_hits: NDArray[np.bool_]) -> Interval:
    """The share of ``True`` [n], with its interval."""
    return share(int(are_hits.sum()), len(are_hits))


def macro_share(hits: Sequence[int], counts: Sequence[int], chance: np.random.Generator) -> Interval:
    """The mean of the classes' shares; classes without rows don't count.

    Its interval is the percentile bootstrap (Efron, 1979) with rows drawn anew within each class. The hits of such a
    sample are binomial, so they are drawn as one number a class, exactly and at once.
    """
    present = [(hit, count) for hit, count in zip(hits, counts, strict=True) if count]
    if not present:
        return {"n": 0, "value": None, "low": None, "high": None}
    means = np.mean([chance.binomial(count, hit / count, RESAMPLES) / count for hit, count in present], axis=0)
    low, high = np.quantile(means, _TAILS)
    value = float(np.mean([hit / count for hit, count in present]))
    return {"n": sum(count for _, count in present), "value": value, "low": float(low), "high": float(high)}


def paired(
    a_is_right: NDArray[np.bool_],
    b_is_right: NDArray[np.bool_],
    chance: np.random.Generator,
) -> Interval:
    """How much more often B is right than A on the same rows [n].

    ``difference`` is B − A with a percentile bootstrap over rows (Efron, 1979): a row's difference is −1, 0 or 1, so
    that a sample is one multinomial draw. ``p`` is McNemar's exact test (McNemar, 1947): of the rows that only one
    gets right, either has half by chance.
    """
    n = len(a_is_right)
    if n == 0:
        return {"n": 0, "a": None, "b": None, "difference": None, "low": None, "high": None, "p": None}
    only_a, only_b = int(np.sum(a_is_right & ~b_is_right)), int(np.sum(b_is_right & ~a_is_right))
    differences = _resampled(only_a, only_b, n, chance)
    low, high = np.quantile(differences, _TAILS)
    return {
        "n": n,
        "a": float(a_is_right.mean()),
        "b": float(b_is_right.mean()),
        "difference": (only_b - only_a) / n,
        "low": float(low),
        "high": float(high),
        "only_a_is_right": only_a,
        "only_b_is_right": only_b,
        "p": float(binomtest(only_b, only_a + only_b).pvalue) if only_a + only_b else 1.0,
    }


def paired_macro(
    a_is_right: NDArray[np.bool_],
    b_is_right: NDArray[np.bool_],
    classes: NDArray[np.integer[Any]],
    chance: np.random.Generator,
) -> Interval:
    """Macro recall of B − A over ``classes`` [n], with a bootstrap that draws rows anew within each class."""
    recalls, samples = [], []
    for each in np.unique(classes):
        a, b = a_is_right[classes == each], b_is_right[classes == each]
        recalls.append((a.mean(), b.mean()))
        samples.append(_resampled(int(np.sum(a & ~b)), int(np.sum(b & ~a)), len(a), chance))
    a_mean, b_mean = np.mean(recalls, axis=0)
    low, high = np.quantile(np.mean(samples, axis=0), _TAILS)
    return {
        "n": len(classes),
        "a": float(a_mean),
        "b": float(b_mean),
        "difference": float(b_mean - a_mean),
        "low": float(low),
        "high": float(high),
    }


def _resampled(only_a: int, only_b: int, n: int, chance: np.random.Generator) -> NDArray[np.float64]:
    counts = chance.multinomial(n, [only_a / n, only_b / n, 1 - (only_a + only_b) / n], RESAMPLES)
    differences: NDArray[np.float64] = (counts[:, 1] - counts[:, 0]) / n
    return differences
