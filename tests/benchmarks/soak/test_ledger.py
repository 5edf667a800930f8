"""The books of a soak and their verdict."""

from __future__ import annotations

import pytest

from benchmarks.soak.judging import FAULTS, Ending
from benchmarks.soak.ledger import MAX_SLOPE_MB_PER_MIN, Ledger, verdict
from benchmarks.soak.memory import Sample
from benchmarks.soak.mix import Asked

FLAT = [Sample(minute, 200, 0) for minute in range(5)]
ASKED = Asked("patient", b"POST", ("lamp",), intended_ns=1_000_000)


def ledger(*endings: Ending, unfinished: int = 0) -> Ledger:
    books = Ledger()
    for ending in (*[Ending.RIGHT] * 30, *endings):
        books.count_sent()
        books.record(ASKED, ending, now_ns=3_000_000)
    for _ in range(unfinished):
        books.count_sent()
    return books


def test_a_run_of_known_endings_and_flat_memory_passes() -> None:
    assert verdict(ledger(Ending.LOST, Ending.LEFT, Ending.REFUSED), FLAT, []) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_one_fault_fails_the_run_and_is_shown(fault: Ending) -> None:
    books = ledger(fault)
    assert verdict(books, FLAT, []) == [f"1 requests are {fault.value}"]
    assert books.examples[0]["ending"] == fault.value


def test_a_request_without_an_end_fails_the_run() -> None:
    assert verdict(ledger(unfinished=1), FLAT, []) == ["31 requests were sent and 30 ended"]


@pytest.mark.parametrize(("slope", "passes"), [(0.99, True), (MAX_SLOPE_MB_PER_MIN, False)])
def test_memory_may_grow_by_less_than_the_limit(slope: float, passes: bool) -> None:
    assert (verdict(ledger(), [Sample(minute, slope * minute, 0) for minute in range(5)], []) == []) is passes


def test_a_service_that_refuses_almost_everybody_fails() -> None:
    (sentence,) = verdict(ledger(*[Ending.REFUSED] * 4), FLAT, [])
    assert "88.2% of the patient queries" in sentence


def test_an_error_in_the_log_fails_the_run() -> None:
    assert "boom" in verdict(ledger(), FLAT, [{"message": "boom"}])[0]


def test_a_slice_has_what_happened_in_it() -> None:
    books = ledger(Ending.REFUSED)
    first, second = books.close_slice(5), books.close_slice(10)
    assert (first.sent, first.answered, first.refused, first.p50_ms) == (31, 30, 1, 2.0)
    assert (second.sent, second.answered, second.refused, second.p99_ms) == (0, 0, 0, None)
