"""The latency table: how long a row takes, as measured and as followed while serving."""

from __future__ import annotations

import pytest

from app.batching.latency import OUTLIER, SMOOTHING, SPILL, LatencyTable


def test_a_table_without_a_bucket_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a bucket"):
        LatencyTable({})


def test_buckets_rise_whatever_the_order_they_were_measured_in() -> None:
    assert LatencyTable({32: 0.003, 8: 0.001, 16: 0.002}).buckets == (8, 16, 32)


def test_it_starts_with_what_was_measured() -> None:
    table = LatencyTable({8: 0.001, 16: 0.0015})
    assert (table[8], table[16]) == (0.001, 0.0015)
    assert table.as_milliseconds() == {8: 1.0, 16: 1.5}
    assert repr(table) == "<LatencyTable 8: 1.00 ms, 16: 1.50 ms>"


def test_one_slower_row_moves_the_estimate_a_little() -> None:
    table = LatencyTable({8: 0.001, 16: 0.002})
    table.observe(8, 0.002)
    assert table[8] == pytest.approx(0.001 + SMOOTHING * 0.001)
    assert table[16] == pytest.approx(0.002 + SPILL * 0.001)


def test_a_bucket_that_looked_slow_once_is_cleared_by_the_rows_of_the_others() -> None:
    """It is not used while it looks slow, so its own rows never would."""
    table = LatencyTable({8: 0.001, 16: 0.002})
    for _ in range(200):
        table.observe(16, 0.008)
    assert table[16] > 0.007
    for _ in range(500):
        table.observe(8, 0.001)
    assert table[16] == pytest.approx(0.002, rel=0.05)


def test_a_machine_that_became_slower_is_followed_within_some_tens_of_rows() -> None:
    table = LatencyTable({8: 0.001})
    for _ in range(60):
        table.observe(8, 0.003)
    assert table[8] == pytest.approx(0.003, rel=0.05)


@pytest.mark.parametrize("seconds", [OUTLIER * 0.001, 1.0])
def test_a_row_that_was_put_aside_counts_for_a_few_times_the_estimate_at_most(seconds: float) -> None:
    table = LatencyTable({8: 0.001})
    table.observe(8, seconds)
    assert table[8] == pytest.approx(0.001 + SMOOTHING * (OUTLIER - 1) * 0.001)


def test_throughput_is_that_of_the_most_efficient_bucket() -> None:
    table = LatencyTable({8: 0.001, 32: 0.002, 64: 0.008})
    assert table.most_efficient_bucket == 32
    assert table.tokens_per_second == pytest.approx(16_000)


def test_it_is_judged_anew_with_every_row() -> None:
    table = LatencyTable({8: 0.001, 32: 0.0035})
    assert table.most_efficient_bucket == 32
    for _ in range(100):
        table.observe(8, 0.0005)
    assert table.most_efficient_bucket == 8
    assert table.tokens_per_second == pytest.approx(8 / table[8])


@pytest.mark.parametrize(("tokens", "bucket"), [(1, 8), (8, 8), (9, 16), (16, 16), (17, 16)])
def test_the_bucket_for_so_many_tokens_is_the_smallest_that_covers_them_or_the_largest(
    tokens: int, bucket: int
) -> None:
    assert LatencyTable({8: 0.001, 16: 0.002}).bucket_for(tokens) == bucket


def test_rows_that_take_no_time_have_a_finite_throughput() -> None:
    table = LatencyTable({8: 0.0, 16: 0.0})
    assert table.most_efficient_bucket == 16
    assert table.tokens_per_second == pytest.approx(16e6)
