"""Texts whose answers tell them apart."""

from __future__ import annotations

import pytest

from benchmarks.soak.corpus import TOLERANCE, Corpus, texts

ANSWERS = {"lamp": (0.5, 0.3, 0.2), "sofa": (0.4, 0.4, 0.2)}


def result(query: str, *confidences: float) -> dict[str, object]:
    ranked = sorted(zip("abc", confidences, strict=True), key=lambda pair: -pair[1])
    return {"query": query, "intents": [{"intent": name, "confidence": each} for name, each in ranked]}


def test_the_answer_of_another_text_is_not_taken_for_its_own() -> None:
    corpus = Corpus(ANSWERS)
    assert corpus.is_answer("lamp", result("lamp", 0.5, 0.3, 0.2))
    assert not corpus.is_answer("lamp", result("lamp", 0.4, 0.4, 0.2))
    assert not corpus.is_answer("lamp", result("sofa", 0.5, 0.3, 0.2))


@pytest.mark.parametrize(("off", "is_own"), [(0.9 * TOLERANCE, True), (1.1 * TOLERANCE, False)])
def test_an_answer_may_differ_by_the_tolerance(off: float, is_own: bool) -> None:
    assert Corpus(ANSWERS).is_answer("lamp", result("lamp", 0.5 + off, 0.3, 0.2)) is is_own


def test_texts_that_answers_can_not_tell_apart_are_left_out() -> None:
    corpus = Corpus(ANSWERS | {"lamps": (0.5 + TOLERANCE, 0.3, 0.2)})
    assert corpus.texts == ["lamp", "sofa"]
    assert corpus.left_out == 1


def test_texts_are_distinct_and_some_are_long() -> None:
    found = texts(400, seed=1)
    assert len(set(found)) == len(found) == 400
    assert 40 <= sum(len(text) > 60 for text in found) <= 60
    assert found == texts(400, seed=1)
