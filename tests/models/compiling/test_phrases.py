"""A tokenizer's words and the phrases made of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from tokenizers.models import BPE, WordPiece
from tokenizers.pre_tokenizers import BertPreTokenizer, ByteLevel

from models.compiling.phrases import random_phrases, vocabulary


def saved(tokenizer: Tokenizer, folder: Path) -> Path:
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder / "tokenizer.json"


def test_of_word_pieces_only_those_that_are_words_alone_count_in_their_order(tmp_path: Path) -> None:
    tokens = ["[UNK]", "[CLS]", "the", "##lamp", "a", "shoes", "12", "Berlin", "!", "lamp", "straße"]
    pieces = Tokenizer(WordPiece({token: index for index, token in enumerate(tokens)}, unk_token="[UNK]"))
    pieces.pre_tokenizer = BertPreTokenizer()
    assert vocabulary(saved(pieces, tmp_path)) == ["the", "shoes", "lamp", "straße"]


def test_of_byte_pairs_only_those_that_begin_a_word_do(tmp_path: Path) -> None:
    tokens = ["l", "a", "m", "p", "Ġ", "la", "mp", "lamp", "Ġlamp", "Ġla"]
    merges = [("l", "a"), ("m", "p"), ("la", "mp"), ("Ġ", "lamp"), ("Ġ", "la")]
    pairs = Tokenizer(BPE({token: index for index, token in enumerate(tokens)}, merges))
    pairs.pre_tokenizer = ByteLevel(add_prefix_space=False)
    assert vocabulary(saved(pairs, tmp_path)) == ["la", "lamp"]


WORDS = [f"w{rank}" for rank in range(1000)]


def test_the_same_seed_gives_the_same_phrases() -> None:
    assert random_phrases(WORDS, 50, seed=1) == random_phrases(WORDS, 50, seed=1)
    assert random_phrases(WORDS, 50, seed=1) != random_phrases(WORDS, 50, seed=2)


@pytest.mark.parametrize("count", [0, 1, 100])
def test_there_are_as_many_as_asked_for_and_each_has_one_to_six_words(count: int) -> None:
    phrases = random_phrases(WORDS, count, seed=3)
    assert len(phrases) == count
    assert {len(phrase.split()) for phrase in phrases} <= set(range(1, 7))


def test_common_words_come_more_often_and_rare_ones_too() -> None:
    seen = Counter(word for phrase in random_phrases(WORDS, 5000, seed=4) for word in phrase.split())
    halves = [sum(seen[word] for word in half) for half in (WORDS[:500], WORDS[500:])]
    assert 1.5 < halves[0] / halves[1] < 3
    assert len(seen) > 990
