"""Asking a model many texts, with a bar for whoever waits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.evaluation.subject import Answer
from models.training.scores import Floats

# Enough to fill rows, few enough that the bar moves.
CHUNK = 256


def ask(answer: Answer, texts: Sequence[str], doing: str) -> Floats:
    """Probabilities [texts, labels]. The bar goes to standard error, and only to a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    answers = []
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        bar = bars.add_task(doing, total=len(texts))
        for start in range(0, len(texts), CHUNK):
            chunk = texts[start : start + CHUNK]
            answers.append(answer(chunk))
            bars.advance(bar, len(chunk))
    return np.concatenate(answers).astype(np.float64)
