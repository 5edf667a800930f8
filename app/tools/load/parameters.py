"""What the load tester's options accept, with a clear word where they don't."""

from __future__ import annotations

import click

from app.tools.load.plan import MAX_DURATION_S
from app.tools.parameters import POSITIVE, Finite

SECONDS = Finite(0, MAX_DURATION_S, min_open=True)


def parse_rates(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[float, ...] | None:
    return None if value is None else tuple(POSITIVE(rate, parameter, context) for rate in value.split(","))
