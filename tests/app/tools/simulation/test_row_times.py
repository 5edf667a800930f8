from __future__ import annotations

from random import Random

import pytest

from app.tools.simulation.row_times import ROW_TOKENS, RowTimes


class TestStated:
    def test_one_number_is_every_row(self) -> None:
        row_times = RowTimes.stated("3")
        assert row_times.warm_s == {ROW_TOKENS: 0.003}
        assert row_times.max_tokens == ROW_TOKENS

    def test_a_table_has_a_time_for_each_bucket(self) -> None:
        row_times = RowTimes.stated("8:1.3,16:2,32:2.9")
        assert row_times.warm_s == pytest.approx({8: 0.0013, 16: 0.002, 32: 0.0029})
        assert row_times.max_tokens == 32

    def test_each_row_takes_just_that(self) -> None:
        assert RowTimes.stated("8:1,16:2").draw(16, 1.0, Random(0)) == 0.002

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("", "'' is neither"),
            ("fast", "'fast' is neither milliseconds nor TOKENS:MILLISECONDS"),
            ("8:1,x:2", "'x:2' is neither"),
            ("8:1,16:", "'16:' is neither"),
            ("0", "'0': a row holds at least 3 tokens and takes over 0 and under 10,000 ms"),
            ("nan", "'nan': a row"),
            ("10000", "'10000': a row"),
            ("2:1", "'2:1': a row"),
            ("8:1,8:2", "'8:2': there is a time for 8 tokens already"),
        ],
    )
    def test_what_is_no_time_is_refused_with_the_reason(self, text: str, reason: str) -> None:
        with pytest.raises(ValueError, match=reason):
            RowTimes.stated(text)


class TestMeasured:
    ROWS = RowTimes({8: 0.001, 16: 0.0015}, {0.0: {8: [0.002]}, 0.01: {8: [0.004]}}, 16)

    @pytest.mark.parametrize(("pause_s", "row_s"), [(0.0, 0.002), (0.0099, 0.002), (0.01, 0.004), (3.0, 0.004)])
    def test_a_row_takes_what_was_seen_after_a_pause_that_was_not_longer(self, pause_s: float, row_s: float) -> None:
        assert self.ROWS.draw(8, pause_s, Random(0)) == row_s

    def test_a_bucket_that_was_not_seen_is_off_its_warm_up_by_as_much_as_the_longest_that_was(self) -> None:
        assert self.ROWS.draw(16, 0.0, Random(0)) == pytest.approx(0.0015 + 0.001)

    def test_each_row_is_another_draw(self) -> None:
        rows = RowTimes({8: 0.001}, {0.0: {8: [0.001, 0.002, 0.003]}}, 8)
        rng = Random(0)
        assert {rows.draw(8, 0.0, rng) for _ in range(50)} == {0.001, 0.002, 0.003}
