"""Carriers are cut, styles told apart, and texts of one template share a family."""

from __future__ import annotations

import pytest

from models.data.style import cut_carrier, cut_question, family_of, style_of


@pytest.mark.parametrize(
    "text", ["where is my order", "play some jazz", "is this washable", "cancel my order", "can i pay later"]
)
def test_a_question_a_command_and_a_person_make_a_sentence(text: str) -> None:
    assert style_of(text) == "sentence"


@pytest.mark.parametrize(
    "text", ["iphone 12 case", "order status", "the art of war", "return label", "miami beach towel"]
)
def test_a_name_or_a_list_of_words_is_keywords(text: str) -> None:
    assert style_of(text) == "keyword"


@pytest.mark.parametrize(
    ("sentence", "keywords"),
    [
        ("i am looking for a pair of red shoes", "red shoes"),
        ("i'd like to buy a lamp", "lamp"),
        ("can you help me to cancel my order", "cancel my order"),
        ("i need assistance to see the invoice", "invoice"),
        ("how do i reset my password", "reset my password"),
        ("where is my order", "order"),
        ("hi please show me desks", "desks"),
        ("red shoes", "red shoes"),
    ],
)
def test_the_carrier_of_a_sentence_is_cut(sentence: str, keywords: str) -> None:
    assert cut_carrier(sentence) == keywords


@pytest.mark.parametrize("text", ["i want", "looking for", "help", "a", "can you help me"])
def test_a_text_that_is_all_carrier_stays(text: str) -> None:
    assert cut_carrier(text) == text


@pytest.mark.parametrize(
    ("question", "keywords"),
    [
        ("what is the population of oslo", "population of oslo"),
        ("who wrote hamlet", "wrote hamlet"),
        ("how many legs does a spider have", "legs does a spider have"),
        ("oslo population", "oslo population"),
    ],
)
def test_the_question_word_is_cut(question: str, keywords: str) -> None:
    assert cut_question(question) == keywords


def test_one_template_is_one_family_whatever_its_carrier_number_and_order() -> None:
    families = {
        family_of(text)
        for text in ("where is order 123", "i need help tracking order 9", "orders tracked # 55", "track my orders 1")
    }
    assert families == {"# order track", "# order"}


def test_a_text_without_content_is_its_own_family() -> None:
    assert family_of("how are you") == "how are you"
