from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from app.bundle import Bundle
from app.tools.simulation.lengths import LogNormal, Observed
from tests.tiny_bundle import MAX_TOKENS


def draw(text: str, count: int = 100_000) -> np.ndarray:
    return LogNormal.stated(text).draw(count, np.random.default_rng(0))


class TestStated:
    @pytest.mark.parametrize(("text", "mean", "p99"), [("9:22", 9, 22), ("12:40", 12, 40), ("30:33", 30, 33)])
    def test_they_have_the_mean_and_the_99th_percentile_that_were_stated(
        self, text: str, mean: float, p99: float
    ) -> None:
        tokens = draw(text)
        assert tokens.mean() == pytest.approx(mean, rel=0.01)
        assert np.percentile(tokens, 99) == pytest.approx(p99, abs=1)

    def test_one_number_is_all_of_them(self) -> None:
        assert set(draw("16", 100)) == {16}

    def test_none_is_shorter_than_a_word_between_the_special_tokens(self) -> None:
        assert draw("4:12").min() == 3

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("", "'' is neither TOKENS nor MEAN:P99"),
            ("long", "neither"),
            ("9:22:30", "neither"),
            ("2.9", "queries have 3 to 512 tokens"),
            ("513", "queries have 3 to 512 tokens"),
            ("nan", "queries have 3 to 512 tokens"),
            ("9:9", "P99 is over the mean and at most 15.0 times it"),
            ("9:nan", "P99 is over the mean"),
            ("9:140", "P99 is over the mean"),
        ],
    )
    def test_what_no_queries_have_is_refused_with_the_reason(self, text: str, reason: str) -> None:
        with pytest.raises(ValueError, match=reason):
            LogNormal.stated(text)


class TestObserved:
    def test_they_are_the_tokens_of_the_queries_as_the_bundle_sees_them(self, tiny_bundle: Path) -> None:
        lengths = Observed(["Where is my order?", "shoes", "  ", "red " * 100], Bundle(tiny_bundle))
        assert lengths.tokens.tolist() == [6, 3, MAX_TOKENS]
        assert set(lengths.draw(100, np.random.default_rng(0))) == {6, 3, MAX_TOKENS}

    def test_blank_ones_alone_are_none(self, tiny_bundle: Path) -> None:
        with pytest.raises(ValueError, match="no query that is not blank"):
            Observed([" ", ""], Bundle(tiny_bundle))
