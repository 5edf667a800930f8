"""The packed graph as an exported program with T and S open: the one way out of PyTorch for the targets that it has."""

from __future__ import annotations

import torch

from models.encoder import PackedEncoder

# Lengths of the example; any do, since T and S stay open, but 1 would be taken for a constant.
_TOKENS, _SEGMENTS = 12, 4


def export(encoder: PackedEncoder) -> torch.export.ExportedProgram:
    size = encoder.config.embedding_size
    example = (
        torch.zeros(1, _TOKENS, size),
        torch.zeros(1, 1, _TOKENS, _TOKENS),
        torch.zeros(_SEGMENTS, _TOKENS),
    )
    t, s = torch.export.Dim("t"), torch.export.Dim("s")
    return torch.export.export(
        encoder, example, dynamic_shapes={"hidden": {1: t}, "mask": {2: t, 3: t}, "pool": {0: s, 1: t}}
    )
