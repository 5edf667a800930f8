"""Curated overrides: a small table that a merchandiser edits, applied before the model and outside the bundle.

A tab-separated file with a header: ``query`` and ``intent``, and if wanted ``group``, ``author``, ``expires``
(YYYY-MM-DD, the last day on which it holds) and ``note``. This is how a navigational query ("gift cards") or a launch
day's name is served.
"""

from __future__ import annotations

import csv
import logging
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import NamedTuple

from app.errors import SettingsError
from app.ranking import Ranked
from app.text import normalise

logger = logging.getLogger(__name__)

REQUIRED = ("query", "intent")
COLUMNS = (*REQUIRED, "group", "author", "expires", "note")


class Override(NamedTuple):
    """One line of the table, its query in the form that the model would see."""

    query: str
    intent: str
    group: str
    expires: date | None
    line: int

    def holds_on(self, day: date) -> bool:
        return self.expires is None or day <= self.expires

    @property
    def ranked(self) -> Ranked:
        """What a caller gets: the intent and its group, with confidence 1."""
        return Ranked([(self.intent, 1.0)], [(self.group, 1.0)])


class Overrides:
    """The overrides of a file that hold today; ``refresh`` reads it again when it has changed.

    ``groups`` is the bundle's intents and their groups; an intent that is not among them needs a group of its own in
    the table. Raises ``SettingsError`` naming each line that is wrong.
    """

    def __init__(
        self,
        path: Path,
        *,
        groups: Mapping[str, str],
        max_tokens: int,
        today: Callable[[], date] = date.today,
    ) -> None:
        self._path = path
        self._groups = groups
        self._max_tokens = max_tokens
        self._today = today
        self._stamp = self._stat()
        self._all = read_overrides(path, groups=groups, max_tokens=max_tokens)
        self._day = today()
        self._active = self._choose()

    def __repr__(self) -> str:
        return f"<Overrides {self._path}: {len(self._active)} of {len(self._all)} hold on {self._day}>"

    def get(self, text: str) -> Ranked | None:
        """The override of a normalised query."""
        return self._active.get(text)

    def refresh(self) -> None:
        """Follow the file and the calendar. One that became wrong is reported once, and the last good one holds on."""
        stamp, day = self._stat(), self._today()
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                self._all = read_overrides(self._path, groups=self._groups, max_tokens=self._max_tokens)
            except SettingsError as error:
                logger.error(
                    "the overrides changed and can't be used; the last good ones hold on", extra={"why": str(error)}
                )
            else:
                logger.info("overrides read again", extra={"overrides": len(self._all)})
                self._active = self._choose()
        if day != self._day:
            self._day = day
            self._active = self._choose()

    def _choose(self) -> dict[str, Ranked]:
        return {each.query: each.ranked for each in self._all if each.holds_on(self._day)}

    def _stat(self) -> tuple[int, int] | None:
        """What changes when somebody saves the file."""
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size


def read_overrides(path: Path, *, groups: Mapping[str, str], max_tokens: int) -> list[Override]:
    """Every line of the file, expired ones too. Raises ``SettingsError`` that names all lines that are wrong."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
            columns = list(reader.fieldnames or ())
            rows = [(reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"overrides {path}: {getattr(error, 'strerror', None) or error}") from None
    if missing := [name for name in REQUIRED if name not in columns]:
        raise SettingsError(
            f"overrides {path}: the header has no {' and no '.join(missing)}; it may have {', '.join(COLUMNS)}"
        )
    if unknown := [name for name in columns if name not in COLUMNS]:
        raise SettingsError(f"overrides {path}: the header has {', '.join(unknown)}; it may have {', '.join(COLUMNS)}")
    overrides: dict[str, Override] = {}
    wrong: list[str] = []
    for line, row in rows:
        try:
            override = _parse(row, line, groups, max_tokens)
            if (earlier := overrides.setdefault(override.query, override)) is not override:
                raise ValueError(f"{override.query!r} is on line {earlier.line} already")
        except ValueError as error:
            wrong.append(f"line {line}: {error}")
    if wrong:
        raise SettingsError(f"overrides {path}: {'; '.join(wrong)}")
    return list(overrides.values())


def _parse(
    row: Mapping[str | None, str | list[str] | None], line: int, groups: Mapping[str, str], max_tokens: int
) -> Override:
    if None in row:
        raise ValueError("more fields than the header has")
    fields = {name: str(value or "").strip() for name, value in row.items()}
    query = normalise(fields["query"], max_tokens=max_tokens)
    if not query:
        raise ValueError("the query is blank")
    intent = fields["intent"]
    if not intent:
        raise ValueError("the intent is blank")
    group = fields.get("group") or groups.get(intent)
    if not group:
        raise ValueError(f"{intent!r} is no intent of the bundle: give it a group, or use {', '.join(groups)}")
    return Override(query, intent, group, _parse_day(fields.get("expires", "")), line)


def _parse_day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise ValueError(f"expires is {text!r}, not a day as 2026-12-24") from None
