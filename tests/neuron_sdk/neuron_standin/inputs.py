"""What a compiled model takes: exactly the shapes and dtypes it was compiled for."""

from __future__ import annotations

from collections.abc import Callable

import torch

from neuron_standin.artefact import Header

Execute = Callable[[list[torch.Tensor]], list[torch.Tensor]]


def check_inputs(header: Header, inputs: list[torch.Tensor]) -> None:
    """RuntimeError naming the first input that is none of what was compiled."""
    if len(inputs) != len(header.shapes):
        raise RuntimeError(f"Incorrect number of inputs: received {len(inputs)}, expected {len(header.shapes)}.")
    first = 1 if header.dynamic_batch else 0
    for index, (tensor, shape, dtype) in enumerate(zip(inputs, header.shapes, header.dtypes, strict=True)):
        if list(tensor.shape)[first:] != shape[first:] or tensor.dim() != len(shape):
            raise RuntimeError(
                f"Incorrect tensor shape at input tensor #{index}: "
                f"received {' '.join(map(str, tensor.shape))}, expected {' '.join(map(str, shape))}."
            )
        if str(tensor.dtype) != dtype:
            raise RuntimeError(
                f"Incorrect tensor data type at input tensor #{index}: received {tensor.dtype}, expected {dtype}."
            )


def in_chunks(header: Header, inputs: list[torch.Tensor], execute: Execute) -> list[torch.Tensor]:
    """Of the compiled batch size, the last one padded, where the batch is dynamic."""
    if not header.dynamic_batch:
        return execute(inputs)
    rows, size = inputs[0].shape[0], header.shapes[0][0]
    if any(tensor.shape[0] != rows for tensor in inputs):
        raise RuntimeError("Inconsistent batch sizes found on inputs")
    chunks = []
    for begin in range(0, rows, size):
        chunk = [tensor[begin : begin + size] for tensor in inputs]
        short = size - len(chunk[0])
        padded = [torch.cat([tensor, tensor.new_zeros(short, *tensor.shape[1:])]) for tensor in chunk]
        chunks.append([output[: size - short] for output in execute(padded)])
    return [torch.cat(outputs) for outputs in zip(*chunks, strict=True)]
