"""Our int8 graph as a server without packing runs it: a padded batch [B, L] with an attention mask.

The very weights and int8 ranges of the bundle's ``cpu`` target, which NNCF found for it; only what ties the graph to
one packed row is exchanged. Made in this project's environment, since a peer's knows no bundle.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import openvino as ov
from openvino import opset13 as ops

from app.backends.cpu import MODEL
from app.bundle import TOKENIZER, Bundle

META = "meta.json"


def build(bundle: Bundle, directory: Path) -> None:
    """Write graph, embedding tables, tokenizer and what turns logits into an answer into ``directory``."""
    manifest = bundle.manifest
    if manifest.pooling != "cls":
        raise ValueError(f"{bundle.path}: pooling is {manifest.pooling!r}, the dense graph reads the first token")
    directory.mkdir(parents=True, exist_ok=True)
    model = densify(ov.Core().read_model(bundle.path / "cpu" / MODEL))
    ov.save_model(model, directory / MODEL, compress_to_fp16=False)
    embeddings = bundle.embeddings()
    np.save(directory / "word.npy", embeddings.word)
    np.save(directory / "position.npy", embeddings.position)
    shutil.copyfile(bundle.path / TOKENIZER, directory / TOKENIZER)
    meta = {
        "labels": [label.name for label in manifest.labels],
        "temperature": manifest.temperature,
        "max_tokens": manifest.max_tokens,
        "lengths": [bucket for bucket in bundle.target("cpu").buckets if bucket <= manifest.max_tokens],
    }
    (directory / META).write_text(json.dumps(meta))


def densify(model: ov.Model) -> ov.Model:
    """``hidden`` [B, L, E] and ``mask`` [B, 1, 1, L] to ``logits`` [B, labels], out of the graph of a packed row.

    The export has written the batch of one into its reshapes, has split heads joined to the batch and expanded to
    their own shape, which does nothing; pooling becomes the first token, [CLS]. ``model`` itself is changed.
    """
    inputs = {parameter.output(0).get_any_name(): parameter for parameter in model.get_parameters()}
    size = inputs["hidden"].partial_shape[2]
    inputs["hidden"].set_partial_shape(ov.PartialShape([-1, -1, size]))
    inputs["mask"].set_partial_shape(ov.PartialShape([-1, 1, 1, -1]))
    for node in model.get_ordered_ops():
        match node.get_type_name():
            case "Reshape" if shape := _around_the_heads(node):
                # A zero copies the size that is there: special_zero.
                node.output(0).replace(ops.reshape(node.input_value(0), [0, *shape[1:]], True).output(0))
            case "Reshape" | "Broadcast":
                node.output(0).replace(node.input_value(0))
            case "Squeeze":
                (pooling,) = node.output(0).get_target_inputs()
                first = ops.gather(node.input_value(0), np.int64(0), np.int64(1))  # (B, L, H) -> (B, H)
                pooling.get_node().output(0).replace(first.output(0))
    model.remove_parameter(inputs["pool"])
    model.validate_nodes_and_infer_types()
    return model


def _around_the_heads(reshape: ov.Node) -> list[int] | None:
    """The shape of a reshape that splits heads off, [1, -1, heads, size], or joins them, [1, 0, H]; else None."""
    target = reshape.input_value(1).get_node()
    if target.get_type_name() != "Constant":
        return None
    shape: list[int] = target.get_data().tolist()
    return shape if shape[:2] in ([1, -1], [1, 0]) else None
