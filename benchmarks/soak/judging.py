"""What a reply is worth: the one rule by which the end of a request is called right, refused, crossed or worse."""

from __future__ import annotations

from enum import Enum

import orjson

from benchmarks.soak.corpus import Corpus
from benchmarks.soak.mix import Asked

BY_THE_MODEL = ("model", "cache")
HINTED = (429, 503)  # statuses that say when to come back


class Ending(Enum):
    RIGHT = "right"  # the answer that the query got alone
    FALLBACK = "fallback"  # a right reply that isn't the model's and says so
    REFUSED = "refused"  # an error, and one that is documented for this request
    LEFT = "left"  # closed by our client before the reply
    LOST = "lost"  # the connection broke just when a worker was killed
    CROSSED = "crossed"  # an answer, and not that of this query
    UNDOCUMENTED = "undocumented"  # a reply that no page promises
    UNANSWERED = "unanswered"  # no reply, and nobody was killed


FAULTS = (Ending.CROSSED, Ending.UNDOCUMENTED, Ending.UNANSWERED)


def judge(asked: Asked, status: int, body: bytes, corpus: Corpus, *, is_whole: bool) -> Ending:
    """The ending that a reply is; ``is_whole`` unless a killed worker has not been replaced yet."""
    try:
        if asked.bad is not None:
            return _judge_refusal(asked, status, body)
        if status == 200:
            return _judge_answer(asked, body, corpus)
        if status in HINTED and orjson.loads(body)["retry_after_ms"] >= 0:
            return Ending.REFUSED if status == 429 or not is_whole else Ending.UNDOCUMENTED
    except (orjson.JSONDecodeError, LookupError, TypeError):  # a reply of another shape
        return Ending.UNDOCUMENTED
    return Ending.REFUSED if status == 504 else Ending.UNDOCUMENTED


def _judge_refusal(asked: Asked, status: int, body: bytes) -> Ending:
    assert asked.bad is not None
    is_documented = (
        status == asked.bad.status and orjson.loads(body)["type"] == f"urn:query-intent:problem:{asked.bad.problem}"
    )
    return Ending.REFUSED if is_documented else Ending.UNDOCUMENTED


def _judge_answer(asked: Asked, body: bytes, corpus: Corpus) -> Ending:
    document = orjson.loads(body)
    results = document.get("results", [document])
    if len(results) != len(asked.texts):
        return Ending.CROSSED
    ending = Ending.RIGHT
    for text, result in zip(asked.texts, results, strict=True):
        if result["source"] not in BY_THE_MODEL:
            if "results" in document:  # lists wait or are refused
                return Ending.UNDOCUMENTED
            ending = Ending.FALLBACK if result["query"] == text else Ending.CROSSED
        elif not corpus.is_answer(text, result):
            return Ending.CROSSED
    return ending
