"""Tiny random Hugging Face classifiers of every architecture; one can be made to tell three kinds of words apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.processors import TemplateProcessing
from transformers import (
    AutoModelForSequenceClassification,
    BertConfig,
    DistilBertConfig,
    ElectraConfig,
    PreTrainedModel,
    RobertaConfig,
)

WORDS = {
    "product": ["lamp", "desk", "tent", "shoes", "cable", "mug", "sofa", "bike"],
    "media": ["song", "film", "novel", "album", "podcast", "comic", "opera", "poem"],
    "help": ["refund", "parcel", "invoice", "password", "delivery", "complaint", "return", "cancel"],
}
LABELS = list(WORDS)
# The padding is token 1 as in RoBERTa, whose positions are counted from it; the others don't mind.
VOCABULARY = ["[CLS]", "[PAD]", "[SEP]", "[UNK]", *(word for words in WORDS.values() for word in words)]
POSITIONS = 40

# initializer_range: large enough that a wrong position or a seen neighbour moves the answer visibly.
_SHARED: dict[str, Any] = {"vocab_size": len(VOCABULARY), "pad_token_id": 1, "initializer_range": 0.1}
_BERT: dict[str, Any] = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 128,
    "max_position_embeddings": POSITIONS,
}
CONFIGS: dict[str, Any] = {
    "bert": BertConfig(**_SHARED, **_BERT),
    "roberta": RobertaConfig(**_SHARED, **(_BERT | {"max_position_embeddings": POSITIONS + 2, "layer_norm_eps": 1e-5})),
    "electra": ElectraConfig(**_SHARED, **_BERT, embedding_size=16),
    "distilbert": DistilBertConfig(
        **_SHARED, dim=64, n_layers=2, n_heads=2, hidden_dim=128, max_position_embeddings=POSITIONS
    ),
}


def make_classifier(architecture: str, *, seed: int = 0) -> PreTrainedModel:
    """All random, the head too."""
    torch.manual_seed(seed)
    config = type(CONFIGS[architecture])(**CONFIGS[architecture].to_diff_dict())
    config.id2label = dict(enumerate(LABELS))
    config.label2id = {label: index for index, label in enumerate(LABELS)}
    return AutoModelForSequenceClassification.from_config(config).eval()


def solve_head(model: PreTrainedModel) -> None:
    """Give the head's last layer the weights with which words of ``WORDS``, alone or in pairs, get their label."""
    final = model.classifier if isinstance(model.classifier, torch.nn.Linear) else model.classifier.out_proj
    features: list[torch.Tensor] = []
    hook = final.register_forward_pre_hook(lambda _module, inputs: features.append(inputs[0]))
    kinds = [[VOCABULARY.index(word) for word in words] for words in WORDS.values()]
    alone = [[0, word, 2] for kind in kinds for word in kind]
    pairs = [[0, first, second, 2] for kind in kinds for first in kind for second in kind]
    of = [index for index, kind in enumerate(kinds) for _ in kind]
    of += [index for index, kind in enumerate(kinds) for _ in kind for _ in kind]
    targets = torch.eye(len(LABELS))[of] * 8  # (queries, labels)
    with torch.no_grad():
        model(input_ids=torch.tensor(alone))
        model(input_ids=torch.tensor(pairs))
        hook.remove()
        x = torch.cat([torch.cat(features), torch.ones(len(of), 1)], dim=1)  # (queries, hidden + 1)
        # Ridge: otherwise the solution blows the steps of int8 up.
        solution = torch.linalg.solve(x.T @ x + 0.5 * torch.eye(x.shape[1]), x.T @ targets)
        final.weight.copy_(solution[:-1].T)
        final.bias.copy_(solution[-1])


def save_checkpoint(folder: Path, architecture: str = "bert", *, half: bool = False) -> Path:
    """A plain Hugging Face folder: config.json, model.safetensors, tokenizer.json."""
    model = make_classifier(architecture)
    solve_head(model)
    (model.half() if half else model).save_pretrained(folder)
    make_tokenizer().save(str(folder / "tokenizer.json"))
    return folder


def make_tokenizer() -> Tokenizer:
    vocabulary = {token: index for index, token in enumerate(VOCABULARY)}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])]
    )
    return tokenizer
