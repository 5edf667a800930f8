"""Beginnings of queries, as a search box sends them while somebody types."""

from __future__ import annotations

from models.compiling.prefixes import SHORTEST, random_prefixes

QUERIES = ["ab", "abc", "abcd", "red shoes, size 9", "where is my parcel"] * 20


def test_each_query_that_is_long_enough_gives_one_that_is_shorter() -> None:
    found = random_prefixes(QUERIES, 1, max_tokens=32)
    assert len(found) == 60
    for query, prefix in zip([query for query in QUERIES if len(query) > SHORTEST], found, strict=True):
        assert query.startswith(prefix)
        assert SHORTEST <= len(prefix) < len(query)
    assert len(set(found)) > 10


def test_a_prefix_is_what_the_service_would_make_of_it() -> None:
    """The comma and the space that it may end in are no part of it."""
    assert "red shoes" in (found := random_prefixes(QUERIES, 1, max_tokens=32))
    assert not {"red shoes,", "red shoes, "} & set(found)


def test_the_same_seed_gives_the_same_prefixes() -> None:
    one, same, other = (random_prefixes(QUERIES, seed, max_tokens=32) for seed in (1, 1, 2))
    assert one == same != other
