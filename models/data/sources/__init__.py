"""One reader per raw data set: its files, and its rows as labelled examples.

A reader knows what its data set means (which of its labels is which of ours), its style, and what in it is one entity
or one template, so that a split can keep that together. Rows of a held-out source say so and are never trained on.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from models.data.sources.example import Example
from models.data.sources.help import read_bitext, read_hint3
from models.data.sources.media import read_books, read_films, read_hwu, read_snips
from models.data.sources.other import read_clinc, read_nq, read_wellformedness
from models.data.sources.products import TITLE_FILES, read_chorus, read_esci, read_titles, read_wands, read_webshop


class Source(NamedTuple):
    files: tuple[str, ...]
    read: Callable[[Path, random.Random], Iterator[Example]]


# The folder of each source under the raw data, with what reads it.
SOURCES: dict[str, Source] = {
    "bitext_customer_service": Source(("train.csv", "dev.csv", "test.csv"), read_bitext),
    "hint3": Source(
        tuple(f"{shop}_{name}.csv" for shop in ("curekart", "sofmattress") for name in ("train", "test")), read_hint3
    ),
    "webshop": Source(("goal_query_map.json", "human_goals.json"), read_webshop),
    "wands": Source(("query.csv",), read_wands),
    "esci_sample": Source(
        ("esci_us_queryset.txt", "ubi_query_counts.tsv", "conversational_cell_phones.csv"), read_esci
    ),
    "chorus": Source(("broad_query_set.txt",), read_chorus),
    "product_pairs": Source(tuple(file for files in TITLE_FILES.values() for file in files), read_titles),
    "goodbooks": Source(("books.tsv.gz",), read_books),
    "wikipedia_movies": Source(("movies_1970_2023.tsv.gz",), read_films),
    "snips": Source(("train.jsonl.gz", "validate.jsonl"), read_snips),
    "hwu64": Source(("train.tsv", "valid.tsv", "test.tsv"), read_hwu),
    "clinc150": Source(("data_full.json",), read_clinc),
    "nq_open": Source(("questions.tsv",), read_nq),
    "query_wellformedness": Source(("train.tsv.gz",), read_wellformedness),
}
