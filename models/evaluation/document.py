"""A report as JSON: four digits where more would be noise, to a file or to standard output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

# Enough for a share of 10,000 rows; probabilities of tests and priors may be smaller.
_DIGITS = 6


def write_document(report: dict[str, Any], out: Path | None) -> None:
    text = json.dumps(rounded(report), indent=1, ensure_ascii=False)
    if out is None:
        click.echo(text)
    else:
        out.write_text(text + "\n", encoding="utf-8")


def rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item) for item in value]
    return round(value, _DIGITS) if isinstance(value, float) else value
