"""The ``cpu`` target: OpenVINO's int8, post-training, by NNCF with static ranges.

Static, because ranges taken from the batch at run time (dynamic quantisation) would let a query's neighbours change its
answer. One file serves every bucket: T and S stay open in it, and the backend fixes them when it loads.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nncf
import openvino as ov
import torch

from app.backends.cpu import MODEL, CpuBackend
from app.bundle import TargetManifest
from app.packing import RowBuffers
from models.compiling.targets.base import Built
from models.compiling.targets.export import export
from models.encoder import PackedEncoder

CALIBRATES = True
# int8 results differ between instruction sets (AVX2 saturates where AVX-512 VNNI does not), so the machine that serves
# may be further off than the one that compiled. The golden label must match in any case.
LEAST_TOLERANCE = 0.05
TOLERANCE_HEADROOM = 3.0


def build(encoder: PackedEncoder, rows: Sequence[RowBuffers], directory: Path) -> Built:
    """Write ``model.xml`` and ``model.bin``: int8 weights and activations, float32 between."""
    model = quantise(convert(encoder), rows)
    ov.save_model(model, directory / MODEL, compress_to_fp16=False)
    return Built(
        engine={"openvino": ov.__version__, "nncf": nncf.__version__, "torch": torch.__version__},
        precision="int8",
        options={"preset": "mixed", "ranges": "static", "calibration_rows": len(rows)},
    )


def backend(directory: Path, target: TargetManifest) -> CpuBackend:
    return CpuBackend(directory, target)


def convert(encoder: PackedEncoder) -> ov.Model:
    """The float32 graph with T and S open."""
    size = encoder.config.embedding_size
    shapes = [("hidden", [1, -1, size]), ("mask", [1, 1, -1, -1]), ("pool", [-1, -1])]
    with warnings.catch_warnings():
        # PyTorch's export, read by OpenVINO, trips over a deprecation of PyTorch's own.
        warnings.filterwarnings("ignore", message=".*treespec", category=FutureWarning)
        model = ov.convert_model(export(encoder), input=shapes)
    model.outputs[0].get_tensor().set_names({"logits"})
    return model


def quantise(model: ov.Model, rows: Sequence[RowBuffers], **options: Any) -> ov.Model:
    """``model`` with every matmul but the pooling one in int8, its ranges taken from ``rows``.

    NNCF's own settings for transformers, SmoothQuant (Xiao et al. 2022) at alpha 0.95 among them: without it 98.6 % of
    the labels agree instead of 99.5 %, and nothing else that was tried does better (models/LOG.md).
    """
    # NNCF reports each choice that the ignored scope and the preset already made. Its own set_log_level would silence
    # the handlers that others put on its logger, too.
    logging.getLogger("nncf").setLevel(logging.ERROR)
    inputs = [{"hidden": row.hidden, "mask": row.mask, "pool": row.pool} for row in rows]
    return nncf.quantize(
        model,
        nncf.Dataset(inputs),
        model_type=nncf.ModelType.TRANSFORMER,
        preset=nncf.QuantizationPreset.MIXED,
        subset_size=len(inputs),
        ignored_scope=nncf.IgnoredScope(names=_pooling(model)),
        **options,
    )


def _pooling(model: ov.Model) -> list[str]:
    """The matmul that reads ``pool``: picking a token is exact in float and costs nothing."""
    readers = [port.get_node() for port in model.input("pool").get_target_inputs()]
    return [node.get_friendly_name() for node in readers]
