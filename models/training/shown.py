"""What whoever waits for a training run sees of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from models.training.recipe import Progress, Recipe

if TYPE_CHECKING:
    from models.training.fitting import Report


@contextlib.contextmanager
def shown(recipe: Recipe, visible: bool) -> Iterator[Report]:
    """A progress bar an epoch, and one line for each that is done."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bars(*columns, console=console, disable=not (visible and console.is_terminal)) as bars:
        bar = bars.add_task("epoch 1", total=None)

        def report(progress: Progress, steps: int) -> None:
            if steps:
                text = f"epoch {progress.epoch + 1}/{recipe.epochs}  loss {progress.loss:.4f}"
                bars.update(bar, description=text, completed=progress.step, total=steps)
            elif visible:
                done = progress.history[-1]
                console.print(
                    f"epoch {progress.epoch}/{recipe.epochs}  loss {done['loss']:.4f}  validation macro-F1 "
                    f"{done['macro_f1']:.4f}  best {progress.best_score:.4f}  {progress.seconds:.0f} s",
                    highlight=False,
                )

        yield report
