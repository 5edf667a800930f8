"""What the doctor says: lines for a person as the checks end, and a document to send back."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from importlib.metadata import distributions
from typing import Any

from app.tools.doctor.check import Check, Verdict, is_well
from app.version import VERSION

# Of the environment only what steers us: the rest may be secret.
TOLD = ("NEURON", "QUERY_INTENT_", "AWS_NEURON", "OMP_NUM_THREADS")
_WORD, _NAME, _WIDTH = 8, 17, 92


def lines(check: Check) -> str:
    first, *others = check.detail.splitlines() or [""]
    indent = " " * (_WORD + _NAME + 2)
    told = [first, *others] + ([f"→ {check.remedy}"] if check.remedy else [])
    wrapped = [part for line in told for part in _wrapped(line)]
    shown = [
        f"{check.verdict.value:<{_WORD}} {check.name:<{_NAME}} {wrapped[0]}",
        *(indent + part for part in wrapped[1:]),
    ]
    return "\n".join(line.rstrip() for line in shown)


def _wrapped(line: str) -> list[str]:
    """A table's lines stay as they are."""
    return textwrap.wrap(line, _WIDTH, subsequent_indent="  ", break_on_hyphens=False) if len(line) > _WIDTH else [line]


def verdict(checks: Sequence[Check], target: str | None) -> str:
    """The last line but one."""
    wrong = [check.name for check in checks if check.is_failed]
    look = [check.name for check in checks if check.verdict is Verdict.WARNING]
    besides = f"; look at {', '.join(look)}" if look else ""
    if wrong:
        return f"NOT WELL: {', '.join(wrong)}{besides}"
    return f"WELL: target {target}{besides}"


def document(checks: Sequence[Check], target: str | None, environ: Mapping[str, str], asked: Mapping[str, Any]) -> Any:
    """Everything, as JSON."""
    return {
        "version": VERSION,
        "at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "well": is_well(checks),
        "target": target,
        "asked": dict(asked),
        "checks": [check.as_json() for check in checks],
        "environment": {name: value for name, value in sorted(environ.items()) if name.startswith(TOLD)},
        "packages": dict(sorted((each.metadata["Name"], each.version) for each in distributions())),
    }
