"""A single query that the model can't answer in time gets the fallback's answer; a list never does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from app.classifier import Predicting, Prediction
from app.errors import DeadlineExceeded, InferenceFailed, InvalidField, NotReady, Overloaded
from app.fallback_classifier import HALF_LIFE_S, RESERVE_S, FallbackClassifier
from app.ranking import Ranked
from tests.fakes import VirtualClock

pytestmark = pytest.mark.anyio

MAX_TOKENS = 8
CUT = 8 * MAX_TOKENS  # characters that are looked at
MODEL_S, FALLBACK_S = 5.0, 0.25
ANSWER = Prediction(Ranked([("shoes", 1.0)], [("shop", 1.0)]), "cache", truncated=True)
RANKED = Ranked([("order_tracking", 0.7)], [("help", 0.9)])
TOO_LATE = (
    Overloaded("the backlog is long", retry_after_s=1.0),
    NotReady("no replica of the model is ready"),
    DeadlineExceeded("the answer did not come before the deadline"),
)
late = pytest.mark.parametrize("error", TOO_LATE, ids=lambda error: type(error).__name__)


class Model:
    """A classifier that takes ``MODEL_S`` to answer, or to raise ``error``; it knows either at once or must wait."""

    def __init__(self, clock: VirtualClock, *, is_at_once: bool) -> None:
        self._is_at_once = is_at_once
        self.error: Exception | None = None
        self.asked: list[tuple[Any, float]] = []
        self._clock = clock

    def can_classify(self, query: str) -> bool:
        return query != "blank"

    def begin(self, query: str, *, timeout_s: float) -> Prediction | Predicting:
        return self._answer(query, timeout_s) if self._is_at_once else self._answer_later(query, timeout_s)

    async def _answer_later(self, query: str, timeout_s: float) -> Prediction:
        return self._answer(query, timeout_s)

    def _answer(self, query: str, timeout_s: float) -> Prediction:
        self.asked.append((query, timeout_s))
        self._clock.advance(MODEL_S)
        if self.error is not None:
            raise self.error
        return ANSWER

    async def classify_list(self, queries: Sequence[str], *, timeout_s: float) -> list[Prediction]:
        return [self._answer(query, timeout_s) for query in queries]


class Setting:
    def __init__(self, *, is_at_once: bool) -> None:
        self.clock = VirtualClock()
        self.model = Model(self.clock, is_at_once=is_at_once)
        self.asked: list[str] = []  # of the fallback
        self.classifier = FallbackClassifier(self.model, self.fallback, max_tokens=MAX_TOKENS, clock=self.clock)

    def fallback(self, text: str) -> Ranked:
        self.asked.append(text)
        self.clock.advance(FALLBACK_S)
        return RANKED


@pytest.fixture(params=[True, False], ids=["at once", "later"])
def setting(request: pytest.FixtureRequest) -> Setting:
    return Setting(is_at_once=request.param)


async def test_the_model_answers_while_it_can(setting: Setting) -> None:
    assert await setting.classifier.classify("order", timeout_s=7.0) == ANSWER
    assert setting.asked == []


@late
async def test_it_answers_the_normalised_text_that_the_model_is_late_for(setting: Setting, error: Exception) -> None:
    setting.model.error = error
    prediction = await setting.classifier.classify(" My ORDER? ", timeout_s=7.0)
    assert setting.asked == ["my order"]
    assert (prediction.ranked, prediction.source, prediction.truncated) == (RANKED, "fallback", False)
    assert (prediction.queue_s, prediction.inference_s) == (MODEL_S, FALLBACK_S)


@pytest.mark.parametrize(("characters", "truncated"), [(CUT, False), (CUT + 1, True)])
async def test_it_says_what_it_has_not_looked_at(setting: Setting, characters: int, truncated: bool) -> None:
    setting.model.error = TOO_LATE[0]
    prediction = await setting.classifier.classify("a" * characters, timeout_s=7.0)
    assert (prediction.truncated, setting.asked) == (truncated, ["a" * CUT])


async def test_the_model_is_given_up_early_enough_for_a_reply_within_the_deadline(setting: Setting) -> None:
    await setting.classifier.classify("order", timeout_s=7.0)
    assert setting.model.asked == [("order", 7.0 - RESERVE_S)]


@late
async def test_a_list_is_refused_as_ever_and_has_its_whole_time(setting: Setting, error: Exception) -> None:
    setting.model.error = error
    with pytest.raises(type(error)):
        await setting.classifier.classify_list(["order"], timeout_s=7.0)
    assert (setting.model.asked, setting.asked) == ([("order", 7.0)], [])


@pytest.mark.parametrize("error", [InferenceFailed("it failed"), InvalidField("query", "is blank")])
async def test_a_fault_stays_a_fault_and_a_wrong_query_wrong(setting: Setting, error: Exception) -> None:
    """That the model can't in time is load; that it fails is a fault, which nobody should paper over."""
    setting.model.error = error
    with pytest.raises(type(error)):
        await setting.classifier.classify("order", timeout_s=7.0)
    assert setting.asked == []


def test_it_can_classify_what_the_model_can(setting: Setting) -> None:
    assert setting.classifier.can_classify("order")
    assert not setting.classifier.can_classify("blank")


@pytest.mark.parametrize("setting", [False], indirect=True, ids=["later"])
async def test_an_event_loop_that_gives_up_late_is_given_that_time(setting: Setting) -> None:
    """It was a second late, so the next one is given up a second earlier; half of it is forgotten every half second."""
    setting.model.error = TOO_LATE[2]
    timeout_s = MODEL_S - 1.0 + RESERVE_S
    for _ in range(2):
        await setting.classifier.classify("order", timeout_s=timeout_s)
    late_s = 0.5 ** (FALLBACK_S / HALF_LIFE_S)  # by the time of the second
    assert [left_s for _, left_s in setting.model.asked] == pytest.approx([MODEL_S - 1.0, MODEL_S - 1.0 - late_s])

    setting.clock.advance(HALF_LIFE_S - FALLBACK_S)
    await setting.classifier.classify("order", timeout_s=100.0)
    assert setting.model.asked[-1] == ("order", pytest.approx(100.0 - RESERVE_S - (1.0 + late_s) * 0.5))


@pytest.mark.parametrize("setting", [False], indirect=True, ids=["later"])
async def test_it_takes_half_of_the_time_at_most(setting: Setting) -> None:
    setting.model.error = TOO_LATE[2]
    for _ in range(2):
        await setting.classifier.classify("order", timeout_s=1.0)
    assert [left_s for _, left_s in setting.model.asked] == [1.0 - RESERVE_S, 0.5]


@pytest.mark.parametrize("setting", [False], indirect=True, ids=["later"])
async def test_time_that_was_over_before_is_not_its_lateness(setting: Setting) -> None:
    setting.model.error = TOO_LATE[2]
    await setting.classifier.classify("order", timeout_s=-50.0)
    await setting.classifier.classify("order", timeout_s=100.0)
    late_s = MODEL_S * 0.5 ** (FALLBACK_S / HALF_LIFE_S)
    assert setting.model.asked[-1] == ("order", pytest.approx(100.0 - RESERVE_S - late_s))
