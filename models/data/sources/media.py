"""Titles of books, films and songs, and what people say to hear or see them."""

from __future__ import annotations

import csv
import gzip
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from models.data.sources.example import Example, HeldOut, clean, example, read_tsv_gz


def read_books(folder: Path, _: random.Random) -> Iterator[Example]:
    """Book titles, with the series in brackets cut off. A bare one-word title could be anything, so it is dropped.

    Titles in other languages are left out too: they would teach that what isn't English is a book.
    """
    for row in read_tsv_gz(folder / "books.tsv.gz"):
        if (code := row["language_code"]) and not code.startswith("en"):
            continue
        title = clean(re.sub(r"\s*\(.*?\)", "", row["title"]))
        if len(title.split()) > 1:
            yield example(title, "media", "books", style="keyword")
            author = clean(row["authors"].split(",")[0])
            yield example(f"{title} {author}", "media", "books_with_author", style="keyword", family=title)


def read_films(folder: Path, _: random.Random) -> Iterator[Example]:
    """Film titles, held out; every fifth for development."""
    for index, row in enumerate(read_tsv_gz(folder / "movies_1970_2023.tsv.gz")):
        title = clean(row["title"])
        if len(title.split()) > 1:
            yield example(
                title, "media", "films", style="keyword", held_out="development" if index % 5 == 0 else "test"
            )


_SNIPS_NAMES = ("object_name", "movie_name", "track", "album", "artist", "playlist", "entity_name")
_SNIPS_LABELS = {
    "PlayMusic": "media", "SearchCreativeWork": "media", "SearchScreeningEvent": "media",
    "GetWeather": "other", "BookRestaurant": "other",
}  # fmt: skip


def read_snips(folder: Path, chance: random.Random) -> Iterator[Example]:
    """Assistant commands. For media also the keywords that their slots make ("hurt johnny cash song").

    Left out: RateBook and AddToPlaylist (about one's own collection), and video games in SearchCreativeWork.
    """
    for row in _snips_rows(folder):
        label = _SNIPS_LABELS.get(row["intent"])
        slots: dict[str, str] = dict(row["slots"])
        if label is None or slots.get("object_type", "").lower() in {
            "video game",
            "game",
            "photograph",
            "picture",
            "painting",
        }:
            continue
        name = next((slots[slot] for slot in _SNIPS_NAMES if slot in slots), "")
        family = name if label == "media" else row["text"]
        yield example(row["text"], label, f"snips_{label}", style="sentence", family=family)
        if label == "media" and name:
            values = [
                value for slot, value in row["slots"] if slot in (*_SNIPS_NAMES, "object_type", "music_item", "genre")
            ]
            chance.shuffle(values)
            keywords = clean(" ".join(values))
            if len(keywords.split()) > 1:
                yield example(keywords, label, "snips_slots", style="keyword", family=family)


def _snips_rows(folder: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(folder / "train.jsonl.gz", "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)
    with (folder / "validate.jsonl").open(encoding="utf-8") as file:
        yield from map(json.loads, file)


_HWU_MEDIA = frozenset(
    ["play_audiobook", "play_music", "play_podcasts", "play_radio", "music_query", "recommendation_movies"]
)
# Lists, takeaway and what one likes about music are nobody's or everybody's label.
_HWU_AMBIGUOUS = re.compile("^(?:lists_|takeaway_|music_|play_)|social_post")


def read_hwu(folder: Path, _: random.Random) -> Iterator[Example]:
    """Home-assistant commands: those about media are held out, most of the rest are ``other``."""
    for name in ("train", "valid", "test"):
        with (folder / f"{name}.tsv").open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file, delimiter="\t"):
                if row["label"] in _HWU_MEDIA:
                    held_out: HeldOut = "development" if name == "valid" else "test"
                    yield example(row["text"], "media", "hwu_media", style="sentence", held_out=held_out)
                elif not _HWU_AMBIGUOUS.match(row["label"]):
                    yield example(row["text"], "other", "hwu_other")
