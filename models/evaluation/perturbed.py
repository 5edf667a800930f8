"""The same queries as a search box gets them: half typed, or with a slip of the finger."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from app.text import normalise
from models.evaluation.asking import ask
from models.evaluation.intervals import paired
from models.evaluation.judged import Judged
from models.evaluation.labelled import Labelled
from models.evaluation.quality import brief
from models.evaluation.subject import Answer
from models.training.augment import prefix, typo
from models.training.scores import Floats

KINDS: dict[str, Callable[[str, random.Random], str]] = {"prefix": prefix, "typo": typo}


def perturbed_scores(
    kind: str,
    labelled: Labelled,
    whole: Judged,
    answer: Answer,
    correct: Callable[[Floats], Floats],
    *,
    max_tokens: int,
    seed: int,
) -> dict[str, Any]:
    """Scores on the rows that ``kind`` changes, and what that costs against the same rows as they were.

    Drawn as in training's augmentation, by ``seed``: prefixes keep 60 % of the characters or more. ``correct`` is what
    is done to the probabilities of the whole queries too. One query of each kind a row.
    """
    chance = random.Random(f"{kind} {seed}")
    texts = [normalise(KINDS[kind](text, chance), max_tokens=max_tokens) for text in labelled.texts]
    changed = np.array([text != before for text, before in zip(texts, labelled.texts, strict=True)])
    if not changed.any():
        return {"n": 0}
    asked = [text for text, is_changed in zip(texts, changed, strict=True) if is_changed]
    before = whole.only(changed)
    after = before.given(correct(ask(answer, asked, f"asking {kind} queries")))
    numbers = np.random.default_rng(seed)
    return brief(after) | {
        "against_whole": {
            "accuracy": paired(before.is_right, after.is_right, numbers),
            "group_accuracy": paired(before.group_is_right, after.group_is_right, numbers),
        },
        "examples": asked[:5],
    }
