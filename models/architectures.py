"""One small adapter per architecture: a Hugging Face checkpoint's names onto ``PackedEncoder`` and its embeddings.

What differs between the families — names, where positions begin, whether there are token types, what stands between the
two layers of the head — is settled here, so that neither the graph nor the service knows which one it runs. Only the
names of a checkpoint's tensors and settings are relied on, never the code of transformers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from app.packing import Embeddings, Pooling
from models.encoder import EncoderConfig, PackedEncoder

Config = Mapping[str, Any]
State = Mapping[str, torch.Tensor]


class UnsupportedCheckpoint(ValueError):
    """A checkpoint that no adapter turns into the packed graph; the message names the architecture or setting."""


@dataclass(frozen=True, slots=True)
class Converted:
    """A checkpoint as the service runs it: the graph, and the tables that are looked up before it."""

    architecture: str
    encoder: PackedEncoder  # float32, in evaluation mode
    embeddings: Embeddings
    pooling: Pooling


@dataclass(frozen=True, slots=True)
class Adapter:
    """How one architecture names what ``PackedEncoder`` has, and the few things that it does in its own way."""

    layers: str  # prefix of a layer's tensors, {} being its number
    layer_names: Mapping[str, str]
    head_dense: str
    head_output: str
    head_activation: str
    settings: Mapping[str, str]  # what PackedEncoder calls it -> what the checkpoint's config.json calls it
    # RoBERTa counts positions from padding_idx + 1, as fairseq did; the rows before are never used.
    positions_follow_padding: bool = False


_BERT_SETTINGS = {
    "hidden_size": "hidden_size",
    "layers": "num_hidden_layers",
    "heads": "num_attention_heads",
    "intermediate_size": "intermediate_size",
    "activation": "hidden_act",
}
_BERT_LAYER = {
    "attention.query": "attention.self.query",
    "attention.key": "attention.self.key",
    "attention.value": "attention.self.value",
    "attention.output": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "up": "intermediate.dense",
    "down": "output.dense",
    "output_norm": "output.LayerNorm",
}
ADAPTERS: dict[str, Adapter] = {
    "bert": Adapter(
        layers="bert.encoder.layer.{}.",
        layer_names=_BERT_LAYER,
        head_dense="bert.pooler.dense",
        head_output="classifier",
        head_activation="tanh",
        settings=_BERT_SETTINGS,
    ),
    "roberta": Adapter(
        layers="roberta.encoder.layer.{}.",
        layer_names=_BERT_LAYER,
        head_dense="classifier.dense",
        head_output="classifier.out_proj",
        head_activation="tanh",
        settings=_BERT_SETTINGS,
        positions_follow_padding=True,
    ),
    "electra": Adapter(
        layers="electra.encoder.layer.{}.",
        layer_names=_BERT_LAYER,
        head_dense="classifier.dense",
        head_output="classifier.out_proj",
        head_activation="gelu",
        settings=_BERT_SETTINGS,
    ),
    "distilbert": Adapter(
        layers="distilbert.transformer.layer.{}.",
        layer_names={
            "attention.query": "attention.q_lin",
            "attention.key": "attention.k_lin",
            "attention.value": "attention.v_lin",
            "attention.output": "attention.out_lin",
            "attention_norm": "sa_layer_norm",
            "up": "ffn.lin1",
            "down": "ffn.lin2",
            "output_norm": "output_layer_norm",
        },
        head_dense="pre_classifier",
        head_output="classifier",
        head_activation="relu",
        settings={
            "hidden_size": "dim",
            "layers": "n_layers",
            "heads": "n_heads",
            "intermediate_size": "hidden_dim",
            "activation": "activation",
        },
    ),
}

# All four families ship 1e-12 except RoBERTa, whose config says so; DistilBERT has no such setting.
_DEFAULT_EPS = 1e-12
# Index buffers that older checkpoints carry; they hold no weights.
_BUFFERS = ("position_ids", "token_type_ids")


def convert(config: Config, state: State) -> Converted:
    """The packed encoder and the embedding tables of a sequence-classification checkpoint, in float32.

    ``config`` is its config.json with defaults filled in, ``state`` its tensors. Raises ``UnsupportedCheckpoint`` for
    other architectures, settings that the graph doesn't have, and tensors that are missing or left over.
    """
    architecture = str(config.get("model_type"))
    if architecture not in ADAPTERS:
        raise UnsupportedCheckpoint(f"architecture {architecture!r}: only {', '.join(ADAPTERS)} can be packed")
    adapter = ADAPTERS[architecture]
    _refuse_variants(architecture, adapter, config)
    tensors = _Tensors(state)
    embeddings = _embeddings(architecture, adapter, config, tensors)
    head = tensors.take(f"{adapter.head_output}.weight")
    encoder = PackedEncoder(
        EncoderConfig(
            embedding_size=embeddings.word.shape[1],
            hidden_size=config[adapter.settings["hidden_size"]],
            layers=config[adapter.settings["layers"]],
            heads=config[adapter.settings["heads"]],
            intermediate_size=config[adapter.settings["intermediate_size"]],
            layer_norm_eps=config.get("layer_norm_eps", _DEFAULT_EPS),
            labels=head.shape[0],
            head_activation=adapter.head_activation,
        )
    )
    weights = _weights(architecture, adapter, encoder.config, tensors)
    tensors.refuse_rest(architecture)
    try:
        encoder.load_state_dict({**weights, "head_output.weight": head})
    except RuntimeError as error:
        raise UnsupportedCheckpoint(f"{architecture}: its tensors don't fit its config.json: {error}") from error
    return Converted(architecture, encoder.eval(), embeddings, pooling="cls")


def _refuse_variants(architecture: str, adapter: Adapter, config: Config) -> None:
    """Settings under which the checkpoint computes something else than the graph does."""
    classes = config.get("architectures") or []
    if classes and not any(name.endswith("ForSequenceClassification") for name in classes):
        raise UnsupportedCheckpoint(f"{', '.join(classes)}: no sequence classifier; train a head on it first")
    expected: dict[str, tuple[Any, ...]] = {
        adapter.settings["activation"]: ("gelu",),
        "position_embedding_type": ("absolute", None),
        "is_decoder": (False, None),
        "problem_type": ("single_label_classification", None),
        "pruned_heads": ({}, None),
    }
    for name, allowed in expected.items():
        value = config.get(name)
        if value not in allowed:
            raise UnsupportedCheckpoint(
                f"{architecture}: {name} is {value!r}, the packed graph has {allowed[0]!r} only"
            )
    hidden_size, heads = (config[adapter.settings[name]] for name in ("hidden_size", "heads"))
    if hidden_size % heads:
        raise UnsupportedCheckpoint(f"{architecture}: {heads} heads don't divide a hidden size of {hidden_size}")


class _Tensors:
    """The checkpoint's tensors, each taken once: what is missing or left over is an error, not a silent difference."""

    def __init__(self, state: State) -> None:
        # Checkpoints from TensorFlow days call a layer norm's weight and bias gamma and beta.
        self._state = {
            name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias"): tensor
            for name, tensor in state.items()
            if not name.endswith(_BUFFERS)
        }

    def __contains__(self, name: str) -> bool:
        return name in self._state

    def take(self, name: str) -> torch.Tensor:
        if name not in self:
            raise UnsupportedCheckpoint(f"the checkpoint has no tensor {name!r}: is it a trained classifier?")
        tensor = self._state.pop(name).detach().float()
        if not tensor.isfinite().all():
            raise UnsupportedCheckpoint(f"the checkpoint's tensor {name!r} is not finite")
        return tensor

    def refuse_rest(self, architecture: str) -> None:
        if rest := sorted(self._state):
            shown = ", ".join(rest[:5]) + (f" and {len(rest) - 5} more" if len(rest) > 5 else "")
            raise UnsupportedCheckpoint(f"{architecture}: the packed graph has no place for the tensors {shown}")


def _embeddings(architecture: str, adapter: Adapter, config: Config, tensors: _Tensors) -> Embeddings:
    prefix = f"{architecture}.embeddings"
    word = tensors.take(f"{prefix}.word_embeddings.weight")  # (V, E)
    position = tensors.take(f"{prefix}.position_embeddings.weight")  # (P, E)
    if adapter.positions_follow_padding:
        position = position[config["pad_token_id"] + 1 :]
    if f"{prefix}.token_type_embeddings.weight" in tensors:
        # A query alone is all of type 0, whatever the architecture distinguishes otherwise.
        position = position + tensors.take(f"{prefix}.token_type_embeddings.weight")[0]
    tables = (np.ascontiguousarray(table.cpu().numpy()) for table in (word, position))
    return Embeddings(*tables)


def _weights(architecture: str, adapter: Adapter, config: EncoderConfig, tensors: _Tensors) -> dict[str, torch.Tensor]:
    """The tensors of ``PackedEncoder`` by its own names, but for the head's last weight."""
    names = {"embedding_norm": f"{architecture}.embeddings.LayerNorm", "head_dense": adapter.head_dense}
    if config.embedding_size != config.hidden_size:
        names["embedding_projection"] = f"{architecture}.embeddings_project"
    for layer in range(config.layers):
        prefix = adapter.layers.format(layer)
        names |= {f"layers.{layer}.{ours}": prefix + theirs for ours, theirs in adapter.layer_names.items()}
    weights = {
        f"{ours}.{kind}": tensors.take(f"{theirs}.{kind}")
        for ours, theirs in names.items()
        for kind in ("weight", "bias")
    }
    return {**weights, "head_output.bias": tensors.take(f"{adapter.head_output}.bias")}
