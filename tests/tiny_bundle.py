"""A real bundle of a few kilobytes: a WordPiece tokenizer, random embeddings, and a target that nothing compiled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer as FastTokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing

from app.backends.null import NullModel
from app.bundle import TOKENIZER, Bundle, GoldenQuery, Label, Manifest, TargetManifest, write_embeddings, write_manifest
from app.packing import RowBuffers
from app.ranking import Ranker
from app.text import NORMALISER_VERSION, normalise
from app.tokenization import Tokenizer
from models.labels import LABELS

MAX_TOKENS = 32
EMBEDDING_SIZE = 16  # at least as many as there are labels: the null model's logits are the first columns
BUCKETS = [8, 16, 32, 64]
TARGET = "fake"
SEED = 7

GOLDEN = ("usb c cable", "where is my order", "cancel my order", "how do i return shoes", "red wine glasses")
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789?!.,'-"
_WORDS = ["order", "my", "where", "is", "return", "cancel", "shoes", "red", "cable", "usb", "how", "do"]
_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
VOCABULARY = [*_SPECIAL, *_WORDS, *_LETTERS, *(f"##{letter}" for letter in _LETTERS), "##s", "##ing"]


def make_tiny_bundle(path: Path, **changes: Any) -> Path:
    """Write a bundle that loads into ``path``; ``changes`` replace fields of its manifest before it is sealed."""
    path.mkdir(parents=True)
    _make_tokenizer().save(str(path / TOKENIZER))
    numbers = np.random.default_rng(SEED)
    word = numbers.normal(size=(len(VOCABULARY), EMBEDDING_SIZE))
    write_embeddings(path, word=word, position=numbers.normal(size=(MAX_TOKENS, EMBEDDING_SIZE)))
    (path / TARGET).mkdir()
    target = TargetManifest(
        target=TARGET, engine={"nothing": "1.0"}, precision="float32", buckets=BUCKETS, tolerance=1e-3
    )
    (path / TARGET / "target.json").write_text(target.model_dump_json(), encoding="utf-8")
    manifest: dict[str, Any] = {
        "name": "tiny",
        "version": "1",
        "architecture": "bert",
        "normaliser": NORMALISER_VERSION,
        "max_tokens": MAX_TOKENS,
        "pooling": "mean",
        "temperature": 1.0,
        "labels": [Label(name=name, definition=definition, group=group) for name, definition, group in LABELS],
        "label_priors": {label.name: round(1 / len(LABELS), 6) for label in LABELS},
        "abstain_threshold": 0.5,
        "golden": [GoldenQuery(query=query, probabilities=[1 / len(LABELS)] * len(LABELS)) for query in GOLDEN],
        "files": {},
    }
    write_manifest(path, Manifest(**manifest))
    write_manifest(path, Manifest(**(manifest | {"golden": _answers(Bundle(path))} | changes)))
    return path


def rewrite(path: Path, **changes: Any) -> None:
    """Change fields of ``bundle.json`` as a careless hand would: nothing is checked and no digest follows."""
    document = json.loads((path / "bundle.json").read_text(encoding="utf-8")) | changes
    (path / "bundle.json").write_text(json.dumps(document), encoding="utf-8")


def _make_tokenizer() -> FastTokenizer:
    vocabulary = {token: index for index, token in enumerate(dict.fromkeys(VOCABULARY))}
    tokenizer = FastTokenizer(WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.add_special_tokens(_SPECIAL)
    tokenizer.normalizer = BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])]
    )
    return tokenizer


def _answers(bundle: Bundle) -> list[GoldenQuery]:
    """The golden queries with what the null model answers to each alone."""
    manifest, embeddings = bundle.manifest, bundle.embeddings()
    tokenizer = Tokenizer(bundle.path / TOKENIZER, max_tokens=MAX_TOKENS, vocabulary=len(embeddings.word))
    row = RowBuffers(MAX_TOKENS, embeddings, pooling=manifest.pooling)
    model = NullModel(len(manifest.labels), 0.0)
    ranker = Ranker(manifest.labels, temperature=manifest.temperature)
    golden = []
    for query in GOLDEN:
        row.fill([tokenizer.encode(normalise(query, max_tokens=MAX_TOKENS)).ids])
        probabilities = ranker.probabilities(model.forward(row.hidden, row.mask, row.pool))[0]
        golden.append(GoldenQuery(query=query, probabilities=probabilities.astype(float).round(6).tolist()))
    return golden
