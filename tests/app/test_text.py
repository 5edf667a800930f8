"""Normalisation: the one form of a query that training and serving both see."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.text import MAX_CHARS_PER_TOKEN, is_cut, normalise, replace_lone_surrogates


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("Red Shoes", "red shoes"),
        ("  red \t\n  shoes  ", "red shoes"),
        ("where is my order?", "where is my order"),
        ("...where's my order?!", "where's my order"),
        ("«red shoes»", "red shoes"),
        ("(red) shoes", "red) shoes"),
        ("iphone 15 128gb", "iphone 15 128gb"),
        ("c#", "c#"),
        ("50%", "50%"),
        ("h&m", "h&m"),
        ("&", "&"),
        ("@home", "@home"),
        ("$20 gift card", "$20 gift card"),
        ("+size dress", "+size dress"),
    ],
)
def test_case_spaces_and_outer_punctuation_go_while_words_digits_and_symbols_stay(text: str, normal: str) -> None:
    assert normalise(text, max_tokens=32) == normal


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("ＲＥＤ　ｓｈｏｅｓ", "red shoes"),
        ("ﬁsh", "fish"),
        ("cafe\u0301", "café"),
        ("CAFÉ", "café"),
        ("ÇA VA", "ça va"),
        ("x²", "x2"),
        ("don’t", "don't"),
        ("“red” ‘shoes’ a", "red\" 'shoes' a"),
        ("red\u00a0shoes", "red shoes"),
        ("red\u2003shoes", "red shoes"),
        ("red\u3000shoes", "red shoes"),
        ("usb‑c cable…", "usb‐c cable"),
        ("赤い 靴？", "赤い 靴"),
        ("حذاء أحمر؟", "حذاء أحمر"),
        ("👟 red", "👟 red"),
    ],
)
def test_unicode_has_one_form(text: str, normal: str) -> None:
    assert normalise(text, max_tokens=32) == normal


@pytest.mark.parametrize(
    "invisible",
    [
        *"\x00\x01\x0e\x1b\x1f\x7f\x84\x86\x9f",
        *"\u00ad\u061c\u180e\u200b\u200d\u200f\u202a\u202e\u2060\u2066\u2069\ufeff",
    ],
    ids=ascii,
)
def test_what_can_not_be_seen_is_taken_out(invisible: str) -> None:
    assert normalise(f"{invisible}red{invisible} sho{invisible}es{invisible}", max_tokens=32) == "red shoes"
    assert normalise(invisible, max_tokens=32) == ""


@pytest.mark.parametrize("space", ["\t", "\n", "\v", "\f", "\r", "\x85", "\u2028", "\u2029"])
def test_every_kind_of_space_separates_words(space: str) -> None:
    assert normalise(f"red{space}shoes", max_tokens=32) == "red shoes"


def test_an_accent_that_only_an_invisible_character_kept_apart_is_joined() -> None:
    assert normalise("cafe\u200d\u0301", max_tokens=32) == "café"


@pytest.mark.parametrize("blank", ["", " ", "\n\t ", "\u00a0", "\u200b\u200b", "\x00", "\ufeff \u2003"])
def test_where_nothing_visible_was_sent_nothing_is_left(blank: str) -> None:
    assert normalise(blank, max_tokens=32) == ""


@pytest.mark.parametrize(("text", "normal"), [("???", "???"), ("-", "-"), ("…", "..."), (" ? ! ", "? !")])
def test_a_query_of_nothing_but_punctuation_keeps_it(text: str, normal: str) -> None:
    assert normalise(text, max_tokens=32) == normal


def test_half_a_surrogate_pair_becomes_the_replacement_character() -> None:
    """F26."""
    assert replace_lone_surrogates("a\ud800b\udfffc") == "a\ufffdb\ufffdc"
    assert replace_lone_surrogates("plain") == "plain"
    assert replace_lone_surrogates("👟") == "👟"
    assert normalise("red \ud83d shoes", max_tokens=32) == "red \ufffd shoes"


@pytest.mark.parametrize("max_tokens", [1, 3, 32])
def test_only_the_first_characters_are_looked_at(max_tokens: int) -> None:
    """F25."""
    limit = max_tokens * MAX_CHARS_PER_TOKEN
    assert len(normalise("a" * (limit - 1), max_tokens=max_tokens)) == limit - 1
    assert len(normalise("a" * limit, max_tokens=max_tokens)) == limit
    assert len(normalise("a" * 1_000_000, max_tokens=max_tokens)) == limit
    assert normalise(" " * limit + "a", max_tokens=max_tokens) == ""


@pytest.mark.parametrize(("characters", "cut"), [(0, False), (1, False), (256, False), (257, True)])
def test_it_says_when_the_end_was_left_out(characters: int, cut: bool) -> None:
    assert is_cut("a" * characters, max_tokens=32) is cut


# Upper-case Greek under stacked accents is left out: lower-casing it makes letters that NFKC would join once more.
CHARACTERS = st.one_of(
    st.characters(max_codepoint=0x2FF),
    st.sampled_from("aA \u0301\u0308\u200b\u200d\u2060\ufeff\ud83d\u2018\u201d\u2026\u3000\uff21ﬁ²ßİŞẞ靴م👟"),
)


@given(st.text(CHARACTERS, max_size=100))
def test_normalising_what_is_normal_changes_nothing(text: str) -> None:
    once = normalise(text, max_tokens=300)
    assert normalise(once, max_tokens=300) == once


@given(st.text(st.characters(), max_size=300))
def test_whatever_is_sent_the_result_is_clean(text: str) -> None:
    normal = normalise(text, max_tokens=32)
    assert normal == normal.strip()
    assert "  " not in normal
    assert "\x00" not in normal
    normal.encode("utf-8")


def test_a_character_that_becomes_eighteen_does_not_stretch_what_is_looked_at() -> None:
    assert len(normalise("\ufdfa" * 256, max_tokens=32)) <= 256
