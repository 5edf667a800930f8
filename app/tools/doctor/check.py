"""What one check says."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


class Verdict(enum.Enum):
    """``NOTE`` and ``SKIPPED`` leave the machine well, ``WARNING`` too: it serves, and somebody should look."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    SKIPPED = "skipped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Check:
    """``remedy`` is what to do about it; ``data`` is for the report and for checks that build on this one."""

    name: str
    verdict: Verdict
    detail: str
    remedy: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_failed(self) -> bool:
        return self.verdict is Verdict.FAILED

    def as_json(self) -> dict[str, Any]:
        found = {"name": self.name, "verdict": self.verdict.value, "detail": self.detail}
        if self.remedy:
            found["remedy"] = self.remedy
        return found | ({"data": dict(self.data)} if self.data else {})


def ok(name: str, detail: str, **data: Any) -> Check:
    return Check(name, Verdict.OK, detail, data=data)


def note(name: str, detail: str, remedy: str = "", **data: Any) -> Check:
    return Check(name, Verdict.NOTE, detail, remedy, data)


def warning(name: str, detail: str, remedy: str, **data: Any) -> Check:
    return Check(name, Verdict.WARNING, detail, remedy, data)


def skipped(name: str, why: str) -> Check:
    return Check(name, Verdict.SKIPPED, why)


def failed(name: str, detail: str, remedy: str, **data: Any) -> Check:
    """Nothing is found wrong without saying what to do."""
    return Check(name, Verdict.FAILED, detail, remedy, data)


def is_well(checks: Iterable[Check]) -> bool:
    return not any(check.is_failed for check in checks)
