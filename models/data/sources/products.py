"""Product searches: requests and titles to train on, the queries of four shops held out."""

from __future__ import annotations

import csv
import gzip
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path

from models.data.sources.example import Example, HeldOut, clean, example, read_csv
from models.data.style import cut_carrier, family_of


def read_webshop(folder: Path, chance: random.Random) -> Iterator[Example]:
    """Crowd-written shopping requests (trained on) and the queries people typed for some of them (held out).

    A request that has a held-out query is left out of training: the query is the request, shortened.
    """
    queries: dict[str, list[str]] = json.loads((folder / "goal_query_map.json").read_text(encoding="utf-8"))
    for index, goal in enumerate(sorted(queries)):
        for query in queries[goal]:
            yield example(
                query, "product_search", "webshop_queries", held_out="development" if index % 10 == 0 else "test"
            )
    for goal in json.loads((folder / "human_goals.json").read_text(encoding="utf-8")):
        if goal in queries:
            continue
        text = clean(goal)
        content = cut_carrier(text)
        family = family_of(content)
        words = re.split(r"(?:,|\.| that | which | and i | i )", content)[0].split()
        keywords = " ".join(words[: chance.randint(2, 9)])
        if chance.random() < 0.5:
            yield Example(text, "product_search", "webshop_goals", "sentence", family)
        elif len(words) > 1:
            yield Example(clean(keywords), "product_search", "webshop_goals", "keyword", family)


# Not a search for a physical product, read by hand: media, services, advice, fragments.
_NOT_PRODUCT = frozenset(
    {
        "promo codes or discounts",
        "drudge report",
        "audible books",
        "where the crawdads sing",
        "netflix",
        "youtube",
        "google",
        "the one for whom food is not enough gorman",
        "your heart and my heart are very old friends",
        "the boys",
        "frank damazio",
        "prime movies",
        "free",
        "music",
        "books",
        "batman",
        "pokemon",
        "food",
        "living room ideas",
        "living room designs",
        "patio design",
        "wainscoting ideas",
        "canadian",
        "amarillo",
        "fragon book",
        "one alium way",
    }
)
# As-you-type fragments of the demo log that no one could label.
_SHORTEST_QUERY = 3


def _product_queries(source: str, texts: Iterator[str], held_out: HeldOut = "test") -> Iterator[Example]:
    for text in texts:
        query = clean(text)
        if len(query) >= _SHORTEST_QUERY and query not in _NOT_PRODUCT:
            yield example(query, "product_search", source, held_out=held_out)


def read_wands(folder: Path, _: random.Random) -> Iterator[Example]:
    """Real queries of a furniture shop, held out."""
    with (folder / "query.csv").open(encoding="utf-8", newline="") as file:
        yield from _product_queries("wands", (row["query"] for row in csv.DictReader(file, delimiter="\t")))


def read_esci(folder: Path, _: random.Random) -> Iterator[Example]:
    """Real hard queries of a general shop, a demo shop's log, and queries rewritten as sentences; held out."""
    yield from _product_queries(
        "esci", iter((folder / "esci_us_queryset.txt").read_text(encoding="utf-8").splitlines())
    )
    with (folder / "ubi_query_counts.tsv").open(encoding="utf-8", newline="") as file:
        yield from _product_queries("esci_log", (row["query"] for row in csv.DictReader(file, delimiter="\t")))
    conversational = (row["query"] for row in read_csv(folder / "conversational_cell_phones.csv"))
    yield from _product_queries("esci_conversational", conversational)


def read_chorus(folder: Path, _: random.Random) -> Iterator[Example]:
    """Head queries of an electronics demo shop, held out."""
    yield from _product_queries(
        "chorus", iter((folder / "broad_query_set.txt").read_text(encoding="utf-8").splitlines())
    )


TITLE_FILES = {
    name: tuple(f"{name}/{file}.txt.gz" for file in files)
    for name, files in {
        "abt_buy": ("train",), "amazon_google": ("train",), "walmart_amazon": ("train",),
        "wdc_cameras": ("train_medium",), "wdc_computers": ("train_medium",), "wdc_shoes": ("train_medium",),
        "wdc_watches": ("train_medium",),
    }.items()
}  # fmt: skip
_TITLE = re.compile(r"COL (?:title|name) VAL (.*?)(?= COL |$)")
# What is left of RDF in the WDC titles: "…"@en, stray quotes, the shop's name after a bar or a dash.
_FOREIGN = re.compile(r'"@(?!en)\w\w')
_DEBRIS = re.compile(r'"@\w+(?:-\w+)?|["|]|\bnull\b| - .*$', re.IGNORECASE)


def read_titles(folder: Path, chance: random.Random) -> Iterator[Example]:
    """Product titles, cut to what somebody would type: two to six words, most model numbers dropped.

    87 % of raw titles hold a digit; that would make "has a digit" mean "is a product".
    """
    titles = sorted({title for files in TITLE_FILES.values() for file in files for title in _titles(folder / file)})
    for title in titles:
        words = title.split()
        if chance.random() < 0.7:
            words = [word for word in words if not any(character.isdigit() for character in word)]
        words = [word for word in words if any(character.isalnum() for character in word)]
        query = clean(" ".join(words[: chance.randint(2, 6)]))
        if len(query.split()) > 1 and query.isascii():
            yield example(query, "product_search", "titles", style="keyword")


def _titles(path: Path) -> Iterator[str]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            for record in line.split("\t")[:2]:
                if (match := _TITLE.search(record)) and not _FOREIGN.search(match[1]):
                    title = match[1].strip()
                    # WDC repeats the title in other words after the first quoted one.
                    first = re.match(r'\s*"([^"]{8,})"', title)
                    yield " ".join(_DEBRIS.sub(" ", first[1] if first else title).split())
