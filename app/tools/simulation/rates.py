"""The rates of a sweep, as they are written on the command line."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

MAX_RATES = 100
HIGHEST = 10_000_000


def parse_rates(text: str) -> list[float]:
    """Ascending, of "400", "100,250,400" or "2000:24000:2000" (from, to, step). Raises ``ValueError``."""
    try:
        if ":" in text:
            first, last, step = map(float, text.split(":"))
            rates = list(islice(_steps(first, last, step), MAX_RATES + 1))
        else:
            rates = sorted({float(rate) for rate in text.split(",")})
    except ValueError:
        raise ValueError(f"{text!r} is neither RATE, RATE,RATE,… nor FROM:TO:STEP") from None
    if len(rates) > MAX_RATES:
        raise ValueError(f"{text!r} is more than {MAX_RATES} rates")
    if not rates or not all(0 < rate <= HIGHEST for rate in rates):
        raise ValueError(f"{text!r}: rates are over 0 and at most {HIGHEST:,} a second")
    return rates


def _steps(first: float, last: float, step: float) -> Iterator[float]:
    """Up to ``last``, which is among them where a step leads there, in spite of rounding."""
    place = 0
    while (rate := first + place * step) <= last + 1e-9 * step:
        yield rate
        place += 1
