"""How other load generators' figures are read and compared with ours."""

from __future__ import annotations

import pytest

from benchmarks.load_agreement import Figures, compare, read_export


def test_perf_analyzers_export_is_read_in_ms_from_send_to_reply() -> None:
    start_ns = 1_741_134_590_000_000_000
    requests = [
        {"timestamp": start_ns + n * 10_000_000, "response_timestamps": [start_ns + n * 10_000_000 + n * 100_000]}
        for n in range(101)
    ]
    requests[0]["response_timestamps"] = []
    found = read_export({"experiments": [{"requests": requests}]})
    assert found["rate"] == pytest.approx(100)
    assert found["failed"] == 1
    assert found["p50"] == pytest.approx(5.05)
    assert found["p99"] == pytest.approx(9.901)


def test_a_void_round_is_left_out() -> None:
    def rounds(voids: int) -> list[tuple[Figures, Figures]]:
        return [
            ({"p50": 10, "failed": 0}, {"p50": 30 if n < voids else 10, "failed": 0, "void": n < voids})
            for n in range(5)
        ]

    assert (compare(rounds(2), ["p50"])["agrees"], compare(rounds(2), ["p50"])["void_rounds"]) == (True, 2)
    assert compare(rounds(3), ["p50"])["agrees"] is False


@pytest.mark.parametrize(
    ("ours", "void", "agrees"), [(10.5, False, True), (9.5, False, True), (10.6, False, False), (10, True, False)]
)
def test_within_5_percent_of_the_other_is_agreement(ours: float, void: bool, agrees: bool) -> None:
    rounds = [({"p50": at, "failed": 0}, {"p50": ours, "failed": 0, "void": void}) for at in (10, 10, 99)]
    found = compare(rounds, ["p50"])
    assert found["agrees"] is agrees
    assert found["p50"] == {"theirs": 10, "ours": ours, "difference": pytest.approx(ours / 10 - 1)}
