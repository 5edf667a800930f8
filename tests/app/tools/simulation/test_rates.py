from __future__ import annotations

import pytest

from app.tools.simulation.rates import MAX_RATES, parse_rates


@pytest.mark.parametrize(
    ("text", "rates"),
    [
        ("400", [400]),
        ("0.5", [0.5]),
        ("250,100,250", [100, 250]),
        ("100:400:100", [100, 200, 300, 400]),
        ("100:399:100", [100, 200, 300]),
        ("0.1:0.3:0.1", [0.1, 0.2, 0.3]),
        ("100:100:5", [100]),
        (f"1:{MAX_RATES}:1", [*range(1, MAX_RATES + 1)]),
    ],
)
def test_one_some_or_a_range_of_rates(text: str, rates: list[float]) -> None:
    assert parse_rates(text) == pytest.approx(rates)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "'' is neither RATE, RATE,RATE,… nor FROM:TO:STEP"),
        ("many", "neither"),
        ("1:2", "neither"),
        ("1:2:3:4", "neither"),
        ("0", "rates are over 0 and at most 10,000,000 a second"),
        ("-1", "over 0"),
        ("nan", "over 0"),
        ("10000001", "over 0"),
        ("400:100:100", "over 0"),
        ("1:2:0", "is more than 100 rates"),
        ("nan:2:1", "over 0"),
        ("1:inf:1", "is more than 100 rates"),
        (f"1:{MAX_RATES + 1}:1", "is more than 100 rates"),
        (",".join(map(str, range(1, MAX_RATES + 2))), "is more than 100 rates"),
    ],
)
def test_anything_else_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_rates(text)
