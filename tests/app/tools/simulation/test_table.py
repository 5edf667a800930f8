from __future__ import annotations

import dataclasses

import pytest

from app.tools.simulation.figures import Figures
from app.tools.simulation.row_times import RowTimes
from app.tools.simulation.table import HEADER, line, rows, title, verdict
from tests.app.tools.simulation.scenarios import deployment

FIGURES = Figures(
    rate=16_000.0,
    queries=50_000,
    p50_ms=3.7,
    p99_ms=4.6,
    p99_9_ms=5.0,
    answered=15_995.0,
    goodput=15_990.0,
    within_slo_share=0.9991,
    rejected_share=0.01,
    expired_share=0.02,
    load=0.43,
    row_fill=0.44,
    queries_a_row=3.01,
    attempts=1.0,
    replicas_busy=0.9,
    busiest_replicas=0.99,
    loops_busy=0.5,
    busiest_loop=0.61,
)


def test_the_title_says_what_is_simulated() -> None:
    one = title(deployment(workers=1, replicas=2, connections=1, shared_cores=2))
    assert one == "1 worker of 2 replicas, 2 cores shared with the event loops, 1 connection"
    several = title(deployment(workers=4, replicas=1, connections=64))
    assert several == "4 workers of 1 replica, a core for each replica, 64 connections"


def test_rows_are_shown_by_their_tokens() -> None:
    assert rows(RowTimes.stated("16:2,8:1.3")) == "ms a row, by its tokens: 1.30 (8), 2.00 (16)"


def test_a_line_has_a_figure_under_each_word_of_the_header() -> None:
    shown = line(FIGURES)
    assert shown.split() == [
        *("16,000", "3.70", "4.60", "5.00", "15,995", "15,990", "1%", "2%", "43%", "44%", "3.0", "99%", "61%")
    ]
    assert len(shown) == len(HEADER)


def test_where_nothing_was_answered_there_is_a_dash() -> None:
    nothing = dataclasses.replace(FIGURES, p50_ms=None, p99_ms=None, p99_9_ms=None)
    assert line(nothing).split()[1:4] == ["–", "–", "–"]


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        ([1.0, 0.99, 0.989], "99% of the queries are answered within 10 ms up to 200/s, of these rates"),
        ([1.0, 0.5, 1.0], "99% of the queries are answered within 10 ms up to 100/s, of these rates"),
        ([0.98], "at none of these rates are 99% of the queries answered within 10 ms"),
    ],
)
def test_the_verdict_is_the_rate_up_to_which_nearly_all_queries_meet_the_objective(
    shares: list[float], said: str
) -> None:
    sweep = [
        dataclasses.replace(FIGURES, rate=100.0 * place, within_slo_share=share)
        for place, share in enumerate(shares, 1)
    ]
    assert verdict(sweep, 10.0) == said
