"""What each reply is worth."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from benchmarks.soak.corpus import Corpus
from benchmarks.soak.judging import Ending, judge
from benchmarks.soak.mix import BAD, Asked

CORPUS = Corpus({"lamp": (0.6, 0.4), "sofa": (0.3, 0.7)})
LAMP, BOTH = Asked("patient", b"", ("lamp",)), Asked("list", b"", ("lamp", "sofa"))
BLANK = Asked("bad", b"", bad=BAD[0])


def answer(query: str, first: float, source: str = "model") -> dict[str, Any]:
    intents = [{"intent": "a", "confidence": first}, {"intent": "b", "confidence": round(1 - first, 6)}]
    return {"query": query, "intents": intents, "source": source}


def ending(asked: Asked, status: int, document: Any, *, is_whole: bool = True) -> Ending:
    body = document if isinstance(document, bytes) else orjson.dumps(document)
    return judge(asked, status, body, CORPUS, is_whole=is_whole)


@pytest.mark.parametrize("source", ["model", "cache"])
def test_the_answer_that_the_query_got_alone_is_right(source: str) -> None:
    assert ending(LAMP, 200, answer("lamp", 0.6, source)) is Ending.RIGHT


@pytest.mark.parametrize(
    "document", [answer("lamp", 0.3), answer("sofa", 0.3), {"results": []}], ids=["scores", "whole", "none"]
)
def test_somebody_elses_answer_is_crossed(document: Any) -> None:
    """F33."""
    assert ending(LAMP, 200, document) is Ending.CROSSED


def test_a_list_is_right_in_its_order_only() -> None:
    lamp, sofa = answer("lamp", 0.6), answer("sofa", 0.3)
    assert ending(BOTH, 200, {"results": [lamp, sofa]}) is Ending.RIGHT
    assert ending(BOTH, 200, {"results": [sofa, lamp]}) is Ending.CROSSED
    assert ending(BOTH, 200, {"results": [lamp]}) is Ending.CROSSED


def test_a_fallback_says_so_and_is_not_compared() -> None:
    assert ending(LAMP, 200, answer("lamp", 0.9, "fallback")) is Ending.FALLBACK
    assert ending(LAMP, 200, answer("sofa", 0.9, "fallback")) is Ending.CROSSED


def test_a_list_never_gets_a_fallback() -> None:
    results = [answer("lamp", 0.6), answer("sofa", 0.9, "fallback")]
    assert ending(BOTH, 200, {"results": results}) is Ending.UNDOCUMENTED


@pytest.mark.parametrize(
    ("status", "document", "is_whole", "expected"),
    [
        (429, {"retry_after_ms": 5}, True, Ending.REFUSED),
        (429, {}, True, Ending.UNDOCUMENTED),
        (504, {}, True, Ending.REFUSED),
        (503, {"retry_after_ms": 5}, False, Ending.REFUSED),
        (503, {"retry_after_ms": 5}, True, Ending.UNDOCUMENTED),
        (500, {}, True, Ending.UNDOCUMENTED),
        (422, {}, True, Ending.UNDOCUMENTED),
        (200, b"{", True, Ending.UNDOCUMENTED),
        (200, {"query": "lamp"}, True, Ending.UNDOCUMENTED),
    ],
)
def test_a_refusal_is_one_of_those_documented(status: int, document: Any, is_whole: bool, expected: Ending) -> None:
    assert ending(LAMP, status, document, is_whole=is_whole) is expected


@pytest.mark.parametrize(
    ("status", "problem", "expected"),
    [
        (422, "invalid-field", Ending.REFUSED),
        (422, "malformed-body", Ending.UNDOCUMENTED),
        (400, "invalid-field", Ending.UNDOCUMENTED),
        (200, "invalid-field", Ending.UNDOCUMENTED),
    ],
)
def test_bad_input_gets_its_own_refusal(status: int, problem: str, expected: Ending) -> None:
    assert ending(BLANK, status, {"type": f"urn:query-intent:problem:{problem}"}) is expected
