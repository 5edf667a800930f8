"""Recorded traffic is read from files of times, with or without queries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from app.tools.traces import Trace, read_trace

TraceOf = Callable[..., Trace]


@pytest.fixture
def trace_of(tmp_path: Path) -> TraceOf:
    def read(name: str, content: str, column: str | None = None, until_s: float | None = None) -> Trace:
        (tmp_path / name).write_text(content)
        return read_trace(tmp_path / name, column, until_s=until_s)

    return read


def test_times_count_from_the_first_wherever_they_start(trace_of: TraceOf) -> None:
    found = trace_of("log.txt", "1700000000.25\n1700000000.5\n1700000002\n")
    assert found.offsets_ns.tolist() == [0, 250_000_000, 1_750_000_000]
    assert found.queries is None


def test_rows_out_of_order_are_sorted_with_their_queries(trace_of: TraceOf) -> None:
    found = trace_of("log.csv", "time,query\n3,lamp\n1,oak table\n1,desk \n2,\n")
    assert found.offsets_ns.tolist() == [0, 0, 1_000_000_000, 2_000_000_000]
    assert found.queries == ["oak table", "desk", "", "lamp"]


def test_a_named_column_holds_the_queries(trace_of: TraceOf) -> None:
    assert trace_of("log.tsv", "time\tq\ttext\n1\tlamp\tx\n", "q").queries == ["lamp"]


def test_a_trace_may_be_cut(trace_of: TraceOf) -> None:
    found = trace_of("log.csv", "time,query\n10,a\n11.5,b\n11,c\n12,d\n", until_s=1.5)
    assert found.offsets_ns.tolist() == [0, 1_000_000_000]
    assert found.queries == ["a", "c"]


@pytest.mark.parametrize(
    ("name", "content", "column", "reason"),
    [
        ("log.txt", "", None, "holds no time"),
        ("log.txt", "1\nsoon\n", None, "row 2: 'soon' is no number of seconds"),
        ("log.txt", "nan\n", None, "row 1: 'nan' is no number of seconds"),
        ("log.csv", "at,query\n1,lamp\n", None, "no column 'time'; it has at, query"),
        ("log.csv", "time,query\n1,lamp\n", "q", "no column 'q'; it has time, query"),
        ("log.txt", "1\n", "q", "no column 'q'; it has none"),
        ("log.jsonl", '{"time": 1}\n', None, r"times are read from \.txt, \.csv or \.tsv"),
        ("log.xlsx", "", None, "don't know .xlsx"),
    ],
)
def test_what_is_no_trace_is_refused_with_the_reason(
    trace_of: TraceOf, name: str, content: str, column: str | None, reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        trace_of(name, content, column)
