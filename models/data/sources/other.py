"""What no shop answers: questions of the web, requests to banks and assistants."""

from __future__ import annotations

import csv
import gzip
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path

from models.data.sources.example import Example, HeldOut, clean, example
from models.data.style import cut_question

_CLINC_HELD_OUT: dict[str, HeldOut] = {"oos_train": "development", "oos_val": "development", "oos_test": "test"}
_CLINC_LABELS = {"order_status": "order_tracking", "play_music": "media", "what_song": "media"}
# A shop's own matters or nobody's, said to a bank or an assistant.
_CLINC_AMBIGUOUS = frozenset(
    [
        "order",
        "shopping_list",
        "shopping_list_update",
        "update_playlist",
        "next_song",
        "cancel",
        "repeat",
        "card_declined",
        "account_blocked",
        "pin_change",
        "report_fraud",
        "freeze_account",
        "application_status",
        "order_checks",
        "change_user_name",
    ]
)


def read_clinc(folder: Path, _: random.Random) -> Iterator[Example]:
    """Assistant and bank requests: nearly all are ``other``. The out-of-scope queries are held out."""
    for name, rows in json.loads((folder / "data_full.json").read_text(encoding="utf-8")).items():
        held_out = _CLINC_HELD_OUT.get(name, "")
        for text, intent in rows:
            if intent not in _CLINC_AMBIGUOUS:
                label = _CLINC_LABELS.get(intent, "other")
                source = "clinc_oos" if held_out else f"clinc_{label}"
                yield example(text, label, source, held_out=held_out)


# Without its question word a trivia question about a film looks like a search for the film.
_ABOUT_MEDIA = re.compile(
    r"\b(?:movies?|films?|songs?|books?|novels?|episodes?|season|series|albums?|sings?|sang|lyrics|tv|show)\b"
)


def _questions(text: str, source: str, held_out: HeldOut = "") -> Iterator[Example]:
    text = clean(text)
    yield example(text, "other", source, held_out=held_out)
    keywords = cut_question(text)
    if not held_out and keywords != text and len(keywords.split()) > 1 and not _ABOUT_MEDIA.search(keywords):
        yield example(keywords, "other", f"{source}_keywords", style="keyword")


def read_nq(folder: Path, _: random.Random) -> Iterator[Example]:
    """Real web questions; those of efficientqa_test are held out."""
    with (folder / "questions.tsv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            yield from _questions(row["question"], "nq", "test" if row["split"] == "efficientqa_test" else "")


def read_wellformedness(folder: Path, _: random.Random) -> Iterator[Example]:
    """Questions asked on the web, many of them ungrammatical."""
    with gzip.open(folder / "train.tsv.gz", "rt", encoding="utf-8") as file:
        for line in file:
            yield from _questions(line.rsplit("\t", 1)[0], "wellformedness")
