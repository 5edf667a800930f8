"""Which queries are sent, and how often each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from app.tools.load.queries import OWN_QUERIES, first_distinct, in_turn, make_up, read_queries, zipf


def test_a_text_file_holds_a_query_a_line(tmp_path: Path) -> None:
    (tmp_path / "queries.txt").write_text("\ufeffoak table\n\n  red, blue  \n", encoding="utf-8")
    assert read_queries(tmp_path / "queries.txt", None) == ["oak table", "red, blue"]


@pytest.mark.parametrize(("name", "separator"), [("queries.csv", ","), ("queries.tsv", "\t")])
def test_a_table_holds_queries_in_the_named_column(tmp_path: Path, name: str, separator: str) -> None:
    (tmp_path / name).write_text(f"id{separator}query\n1{separator}oak table\n2{separator}\n3\n4{separator}lamp\n")
    assert read_queries(tmp_path / name, "query") == ["oak table", "lamp"]
    assert read_queries(tmp_path / name, None) == ["oak table", "lamp"]
    with pytest.raises(ValueError, match=f"{name}, line 1: no column 'q'; it has id, query"):
        read_queries(tmp_path / name, "q")


@pytest.mark.parametrize(("content", "reason"), [(b"\n \n", "holds no query"), (b"caf\xe9\n", "can't be read")])
def test_a_file_without_usable_queries_is_refused_with_the_reason(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "queries.txt").write_bytes(content)
    with pytest.raises(ValueError, match=reason):
        read_queries(tmp_path / "queries.txt", None)


def test_the_first_distinct_queries_are_taken_and_too_few_are_refused() -> None:
    queries = ["lamp", "desk", "lamp", "sofa"]
    assert first_distinct(queries, 2) == ["lamp", "desk"]
    assert first_distinct(queries, 3) == ["lamp", "desk", "sofa"]
    with pytest.raises(ValueError, match="there are 3 distinct queries, fewer than 4"):
        first_distinct(queries, 4)


def test_ten_thousand_distinct_queries_can_be_made_up() -> None:
    queries = make_up(10_000)
    assert len(set(queries)) == 10_000
    assert queries[:50] == make_up(50)
    with pytest.raises(ValueError, match="give a file of --queries"):
        make_up(1_000_000)


def test_the_built_in_queries_differ() -> None:
    assert len(set(OWN_QUERIES)) == len(OWN_QUERIES)


def test_in_turn_each_query_comes_as_often_as_any_other() -> None:
    choice = in_turn(7, 70, seed=1)
    assert np.bincount(choice).tolist() == [10] * 7
    assert choice[:7].tolist() == choice[7:14].tolist() != list(range(7))
    assert in_turn(7, 3, seed=1).size == 3


@pytest.mark.parametrize("s", [0.7, 1.0, 1.3])
def test_under_zipfs_law_the_kth_query_has_one_kth_to_the_s_of_the_firsts_share(s: float) -> None:
    counts = np.bincount(zipf(1000, s, 500_000, seed=3), minlength=1000)
    shares = np.arange(1, 1001) ** -s
    expected = 500_000 * shares / shares.sum()
    assert counts.size == 1000
    assert counts[:20] == pytest.approx(expected[:20], rel=0.06)
    assert counts[500:].sum() == pytest.approx(expected[500:].sum(), rel=0.05)


def test_zipf_with_s_of_0_is_uniform_and_a_seed_names_one_draw() -> None:
    draws = zipf(10, 0, 100_000, seed=1)
    assert np.bincount(draws) == pytest.approx([10_000] * 10, rel=0.05)
    assert draws.tolist() == zipf(10, 0, 100_000, seed=1).tolist()
