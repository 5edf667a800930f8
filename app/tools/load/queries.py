"""What is asked: the queries there are, and which of them each request brings."""

from __future__ import annotations

from itertools import islice, product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from app.tools.query_files import read_file

OWN_QUERIES = (
    *("waterproof hiking boots size 43", "oak coffee table", "usb c charger 65w", "kids rain jacket", "desk lamp"),
    *("noise cancelling headphones", "running shoes women", "cast iron pan 28 cm", "blue velvet sofa"),
    *("film with the talking raccoon", "jazz playlist for dinner", "audiobook for long drives", "season two episode 4"),
    *("where is my parcel", "my order has not moved for three days", "change the delivery address", "cancel my order"),
    *("how do i send this back", "refund still missing", "can i pay by invoice", "card was declined", "reset password"),
    *("delete my account", "phone number of customer service", "talk to a person", "weather tomorrow", "hello"),
    "gift for a gardener",
)
COLOURS = "black white grey red blue green yellow orange pink purple brown beige navy teal olive gold silver cream"
MATERIALS = "wooden leather cotton linen steel glass bamboo velvet ceramic wool plastic marble rattan copper cork"
THINGS = """
chair table lamp desk shelf sofa bed mirror rug curtain cushion blanket vase clock basket bowl plate mug kettle pan
knife tray jug bottle backpack wallet belt watch hat scarf jacket shirt dress skirt coat boots slippers sandals bracelet
ring frame planter stool bench cabinet drawer wardrobe hammock
"""


def read_queries(path: Path, column: str | None) -> list[str]:
    """The queries of a txt, csv, tsv or jsonl file, in their order; blank ones are left out. Raises ``ValueError``."""
    if queries := [text for row in read_file(path, column=column) if (text := row.text.strip())]:
        return queries
    raise ValueError(f"{path} holds no query")


def first_distinct(queries: list[str], count: int) -> list[str]:
    """The first ``count`` that differ. Raises ``ValueError`` where there are fewer."""
    distinct = list(islice(dict.fromkeys(queries), count))
    if len(distinct) < count:
        raise ValueError(f"there are {len(distinct):,} distinct queries, fewer than {count:,}")
    return distinct


def make_up(count: int) -> list[str]:
    """``count`` distinct queries for things that a shop may have, in a fixed random order.

    Raises ``ValueError`` where the words don't go that far.
    """
    queries = [" ".join(words) for words in product(COLOURS.split(), MATERIALS.split(), THINGS.split())]
    if count > len(queries):
        raise ValueError(f"{len(queries):,} queries can be made up, fewer than {count:,}: give a file of --queries")
    return [queries[place] for place in np.random.default_rng(0).permutation(len(queries))[:count]]


def in_turn(distinct: int, count: int, *, seed: int) -> NDArray[np.intp]:
    """All in a random order, that order again and again: int [count], each below ``distinct``."""
    return np.resize(np.random.default_rng(seed).permutation(distinct), count)


def zipf(distinct: int, s: float, count: int, *, seed: int) -> NDArray[np.intp]:
    """Independent draws in which the k-th query has probability k^-s over the sum of them: int [count].

    Zipf's law cut off at ``distinct``, as NumPy's own sampler is not; searches of shops have s around 1.
    """
    cumulative = np.cumsum(np.arange(1, distinct + 1) ** -float(s))
    draws = np.random.default_rng(seed).uniform(0, cumulative[-1], count)
    return np.searchsorted(cumulative, draws, side="right")
