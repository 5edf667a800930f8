"""Text to token ids, by the tokenizer that the bundle brings."""

from __future__ import annotations

import tracemalloc
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.errors import BundleError
from app.settings import SHIPPED_BUNDLE
from app.text import normalise
from app.tokenization import Tokenizer
from tests.tiny_bundle import VOCABULARY

SIZE = len(dict.fromkeys(VOCABULARY))
CLS_ID, SEP_ID = 101, 102  # of the shipped vocabulary
CLS, SEP, UNKNOWN = (VOCABULARY.index(token) for token in ("[CLS]", "[SEP]", "[UNK]"))


def make(bundle: Path, *, max_tokens: int = 32, vocabulary: int = SIZE) -> Tokenizer:
    return Tokenizer(bundle / "tokenizer.json", max_tokens=max_tokens, vocabulary=vocabulary)


def test_a_query_becomes_ids_between_its_special_tokens(tiny_bundle: Path) -> None:
    tokens = make(tiny_bundle).encode("where is my order")
    words = [VOCABULARY.index(word) for word in ("where", "is", "my", "order")]
    assert tokens.ids.tolist() == [CLS, *words, SEP]
    assert tokens.ids.dtype == np.int64
    assert (tokens.truncated, tokens.unknown) == (False, 0)


def test_unknown_tokens_are_counted(tiny_bundle: Path) -> None:
    tokens = make(tiny_bundle).encode("where ☃ is 靴")
    assert tokens.unknown == tokens.ids.tolist().count(UNKNOWN) == 2


@pytest.mark.parametrize(
    ("letters", "length", "truncated"), [(0, 2, False), (1, 3, False), (6, 8, False), (7, 8, True), (500, 8, True)]
)
def test_a_long_query_is_cut_with_its_closing_token_kept(
    tiny_bundle: Path, letters: int, length: int, truncated: bool
) -> None:
    tokens = make(tiny_bundle, max_tokens=8).encode(" ".join("a" * letters))
    assert (len(tokens.ids), tokens.truncated) == (length, truncated)
    assert (tokens.ids[0], tokens.ids[-1]) == (CLS, SEP)


def test_what_was_cut_off_is_not_counted_as_unknown(tiny_bundle: Path) -> None:
    assert make(tiny_bundle, max_tokens=4).encode("where is my ☃ ☃").unknown == 0


def test_padding_and_truncation_that_the_file_asks_for_are_ours_to_decide(tiny_bundle: Path, tmp_path: Path) -> None:
    from tokenizers import Tokenizer as FastTokenizer

    fast = FastTokenizer.from_file(str(tiny_bundle / "tokenizer.json"))
    fast.enable_padding(length=16)
    fast.enable_truncation(4)
    fast.save(str(tmp_path / "tokenizer.json"))
    assert len(make(tmp_path).encode("where is my order").ids) == 6


def test_a_tokenizer_without_an_unknown_token_counts_none(tmp_path: Path) -> None:
    from tokenizers import Tokenizer as FastTokenizer
    from tokenizers.models import WordLevel

    FastTokenizer(WordLevel({"a": 0, "b": 1}, unk_token="b")).save(str(tmp_path / "tokenizer.json"))
    tokens = make(tmp_path, vocabulary=2).encode("b")
    assert (tokens.ids.tolist(), tokens.unknown) == ([1], 0)


@pytest.mark.parametrize("content", [None, b"", b"{}", b"not json", b"\xff\xfe"])
def test_a_file_that_is_no_tokenizer_is_refused_by_name(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "tokenizer.json").write_bytes(content)
    with pytest.raises(BundleError, match=r"tokenizer\.json: not a tokenizer"):
        make(tmp_path)


def test_more_tokens_than_embeddings_are_refused(tiny_bundle: Path) -> None:
    make(tiny_bundle, vocabulary=SIZE + 1)
    with pytest.raises(BundleError, match=f"{SIZE} tokens, but the embedding table has {SIZE - 1} rows"):
        make(tiny_bundle, vocabulary=SIZE - 1)


@cache
def shipped() -> Tokenizer:
    return Tokenizer(SHIPPED_BUNDLE / "tokenizer.json", max_tokens=48, vocabulary=30_522)


@given(st.lists(st.text(max_size=12), max_size=12).map(" ".join))
@example("[mask] [CLS][SEP] it's")
@example("über naïve 耳机 a\u0301b x" + "y" * 200)
def test_words_by_themselves_become_the_tokens_that_the_whole_text_does(text: str) -> None:
    from tokenizers import Tokenizer as FastTokenizer

    whole = FastTokenizer.from_file(str(SHIPPED_BUNDLE / "tokenizer.json"))
    whole.no_truncation()
    text = normalise(text, max_tokens=48)
    ids = whole.encode(text).ids
    tokens = shipped().encode(text)

    assert tokens.truncated == (len(ids) > 48)
    assert tokens.ids.tolist() == (ids if len(ids) <= 48 else [*ids[:47], ids[-1]])


def test_a_word_that_is_known_gives_the_same_tokens_again() -> None:
    tokenizer = shipped()
    first = tokenizer.encode("headphones for headphones").ids.tolist()

    assert tokenizer.encode("headphones for headphones").ids.tolist() == first
    word = tokenizer.encode("headphones").ids.tolist()[1:-1]
    assert first == [CLS_ID, *word, *tokenizer.encode("for").ids.tolist()[1:-1], *word, SEP_ID]


def test_what_is_no_word_is_not_kept() -> None:
    """A stream of long junk, each character of it a token, leaves nothing behind."""
    tokenizer = shipped()
    tokenizer.encode("a")
    tracemalloc.start()
    try:
        for place in range(500):
            tokenizer.encode("".join(chr(0x4E00 + (7919 * place + each) % 20_000) for each in range(250)))
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 100_000  # 200 bytes a text; its ids alone would be 2,000


def test_a_tokenizer_whose_tokens_depend_on_the_space_before_is_given_the_whole_text(tmp_path: Path) -> None:
    from tokenizers import Tokenizer as FastTokenizer
    from tokenizers.models import BPE
    from tokenizers.pre_tokenizers import ByteLevel

    fast = FastTokenizer(BPE({"a": 0, "Ġ": 1, "Ġa": 2}, [("Ġ", "a")]))
    fast.pre_tokenizer = ByteLevel(add_prefix_space=False)
    fast.save(str(tmp_path / "tokenizer.json"))

    assert make(tmp_path, vocabulary=3).encode("a a").ids.tolist() == [0, 2]
