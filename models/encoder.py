"""The one graph that every target compiles: a packed row of several queries in, a row of logits each out.

Attention is written out in matmuls and a softmax, since Inferentia 1's torch 1.13 has no fused operator for it. Token
and position embeddings are looked up outside (``app/packing.py``), so the graph takes floats only.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn


@dataclass(frozen=True, slots=True)
class EncoderConfig:
    """The numbers of a post-layer-norm encoder, under one name each whatever the architecture calls them."""

    embedding_size: int  # differs from hidden_size where embeddings are projected (ELECTRA small)
    hidden_size: int
    layers: int
    heads: int
    intermediate_size: int
    layer_norm_eps: float
    labels: int
    head_activation: str  # between the two layers of the classification head: "tanh", "relu" or "gelu"


ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "relu": nn.ReLU, "gelu": nn.GELU}


class SelfAttention(nn.Module):
    """Multi-head attention (Vaswani et al. 2017, §3.2) whose mask keeps the queries of a row apart."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.head_size = config.hidden_size // config.heads
        self.query = nn.Linear(config.hidden_size, config.hidden_size)
        self.key = nn.Linear(config.hidden_size, config.hidden_size)
        self.value = nn.Linear(config.hidden_size, config.hidden_size)
        self.output = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        query, key, value = (self._split_heads(linear(x)) for linear in (self.query, self.key, self.value))
        scores = query @ key.transpose(-1, -2) / self.head_size**0.5 + mask  # (1, heads, T, T)
        context = torch.softmax(scores, dim=-1) @ value  # (1, heads, T, head_size)
        merged: torch.Tensor = self.output(context.transpose(1, 2).flatten(2))  # (1, T, H)
        return merged

    def _split_heads(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(1, -1, self.heads, self.head_size).transpose(1, 2)  # (1, T, H) -> (1, heads, T, head_size)


class EncoderLayer(nn.Module):
    """Attention, then a two-layer perceptron, each added to its input and normalised after (BERT's order)."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.attention = SelfAttention(config)
        self.attention_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.up = nn.Linear(config.hidden_size, config.intermediate_size)
        self.down = nn.Linear(config.intermediate_size, config.hidden_size)
        self.output_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        x = self.attention_norm(x + self.attention(x, mask))
        y: torch.Tensor = self.output_norm(x + self.down(nn.functional.gelu(self.up(x))))
        return y


class PackedEncoder(nn.Module):
    """Encoder and classification head over one packed row of T tokens that holds up to S queries.

    ``forward(hidden, mask, pool)``:

    - ``hidden`` [1, T, E] float32: the sum of token, position and type embeddings, before their layer norm;
    - ``mask`` [1, 1, T, T] float32, additive: 0 within a query, -1e4 across queries;
    - ``pool`` [S, T] float32: which token (one-hot) or tokens (1/n) stand for each query;
    - returns ``logits`` [S, labels] float32; rows of ``pool`` that are all zero give logits that mean nothing.
    """

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding_norm = nn.LayerNorm(config.embedding_size, eps=config.layer_norm_eps)
        projects = config.embedding_size != config.hidden_size
        self.embedding_projection = nn.Linear(config.embedding_size, config.hidden_size) if projects else nn.Identity()
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.layers))
        self.head_dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.head_activation = ACTIVATIONS[config.head_activation]()
        self.head_output = nn.Linear(config.hidden_size, config.labels)

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor, pool: torch.Tensor) -> torch.Tensor:
        x = self.embedding_projection(self.embedding_norm(hidden))
        for layer in self.layers:
            x = layer(x, mask)
        pooled = pool @ x.squeeze(0)  # (S, T) @ (T, H) -> (S, H)
        logits: torch.Tensor = self.head_output(self.head_activation(self.head_dense(pooled)))
        return logits
