"""How far from float32 a chip computes: numbers are rounded on their way into the ops of a graph."""

from __future__ import annotations

from dataclasses import dataclass

import torch

_BITS = {"bf16": 16, "tf32": 13}  # of float32's mantissa that are lost
# op -> how many of its first inputs the matrix unit reads
_MATMULS = {
    "aten::linear": 2,
    "aten::matmul": 2,
    "aten::mm": 2,
    "aten::bmm": 2,
    "aten::addmm": 3,
    "aten::baddbmm": 3,
    "aten::einsum": 2,
    "aten::_convolution": 2,
    "aten::scaled_dot_product_attention": 3,
}
# Ops that move numbers and compute none.
_VIEWS = {f"aten::{name}" for name in ("select", "slice", "transpose", "permute", "view", "reshape", "expand", "size")}


@dataclass(frozen=True)
class Cast:
    """``scope`` "all": weights and activations of every op; "matmult": what is multiplied; "none": nothing."""

    scope: str
    dtype: str


_LIBRARY = torch.library.Library("neuron_standin", "DEF")
_LIBRARY.define("rounded(Tensor x, str dtype) -> Tensor")


def rounded(x: torch.Tensor, dtype: str) -> torch.Tensor:
    """float32 in, float32 out, with the numbers that ``dtype`` has; other tensors as they are."""
    if x.dtype != torch.float32:
        return x.clone()
    if dtype == "bf16":
        return x.to(torch.bfloat16).to(torch.float32)
    if dtype == "fp16":
        return x.to(torch.float16).to(torch.float32)
    lost = _BITS[dtype]
    bits = x.contiguous().view(torch.int32)
    return ((bits + (1 << (lost - 1))) & -(1 << lost)).view(torch.float32)


_LIBRARY.impl("rounded", rounded, "CPU")


def apply_cast(graph: torch._C.Graph, cast: Cast) -> None:
    """Change a frozen graph so that it rounds as ``cast`` says; weights once and for all, activations as they come."""
    if cast.scope == "none":
        return
    known: dict[str, torch._C.Value] = {}
    for node in [*graph.nodes(), graph.return_node()]:
        for index, value in enumerate(_rounded_inputs(node, cast)):
            if value.type().kind() == "TensorType":
                if value.debugName() not in known:
                    known[value.debugName()] = _insert(graph, node, value, cast.dtype)
                node.replaceInput(index, known[value.debugName()])


def _rounded_inputs(node: torch._C.Node, cast: Cast) -> list[torch._C.Value]:
    """The first so many inputs of ``node`` that are rounded. What the graph returns counts where everything is."""
    inputs = list(node.inputs())
    if cast.scope == "matmult":
        return inputs[: _MATMULS.get(node.kind(), 0)]
    is_op = node.kind().startswith("aten::") and node.kind() not in _VIEWS
    is_op |= node.kind() in ("prim::TupleConstruct", "prim::Return")
    return inputs if is_op else []


def _insert(graph: torch._C.Graph, node: torch._C.Node, value: torch._C.Value, dtype: str) -> torch._C.Value:
    graph.setInsertPoint(node)
    if value.node().kind() == "prim::Constant":
        constant = value.toIValue()
        return graph.insertConstant(rounded(constant, dtype)) if isinstance(constant, torch.Tensor) else value
    cast = graph.insertNode(graph.create("neuron_standin::rounded", [value, graph.insertConstant(dtype)], 1))
    return cast.output()
