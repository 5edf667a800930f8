"""What options of several tools accept, with a clear word where they don't."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

PICTURES = (".png", ".svg", ".pdf")


class Finite(click.FloatRange):
    """A range that nan, which compares as false with every bound, is outside of."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value} is no finite number", param, ctx)
        return found


POSITIVE = Finite(0, min_open=True)
READABLE = click.Path(exists=True, dir_okay=False, path_type=Path)
WRITABLE = click.Path(dir_okay=False, writable=True, path_type=Path)


def check_new_file(context: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
    """Said before the run: what can't be written after minutes of work would be lost."""
    if path and not path.parent.is_dir():
        raise click.BadParameter(f"{path.parent} is no directory")
    if path and parameter.name == "picture" and path.suffix not in PICTURES:
        raise click.BadParameter(f"{path} ends in none of {', '.join(PICTURES)}")
    return path
