"""What a compiled model is here: the original TorchScript behind a header, as the bytes of one uint8 tensor."""

from __future__ import annotations

import io
import json
import uuid
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch

_MAGIC = b"STANDNEF"
KEY_BYTES = len(_MAGIC) + 16


@dataclass(frozen=True)
class Header:
    """Shapes and dtypes are those of the example inputs: nothing else runs."""

    generation: str
    shapes: list[list[int]]
    dtypes: list[str]
    outputs: int
    pipeline_cores: int
    device_bytes: int
    dynamic_batch: bool
    compiler_args: list[str]


@dataclass(frozen=True)
class Program:
    header: Header
    function: Any  # the ScriptModule that computes what the device would

    def with_dynamic_batch(self) -> Program:
        return Program(replace(self.header, dynamic_batch=True), self.function)


def new_key() -> bytes:
    """By which a compiled graph names its model: each copy that is loaded has its own."""
    return _MAGIC + uuid.uuid4().bytes


def key_of(tensor: torch.Tensor) -> bytes | None:
    if tensor.dtype != torch.uint8 or tensor.numel() < KEY_BYTES:
        return None
    key = tensor[:KEY_BYTES].numpy().tobytes()
    return key if key.startswith(_MAGIC) else None


def key_tensor(key: bytes) -> torch.Tensor:
    return torch.frombuffer(bytearray(key), dtype=torch.uint8)


def pack(program: Program) -> torch.Tensor:
    header = json.dumps(asdict(program.header)).encode()
    code = io.BytesIO()
    torch.jit.save(program.function, code)
    content = new_key() + len(header).to_bytes(8, "big") + header + code.getvalue()
    return torch.frombuffer(bytearray(content), dtype=torch.uint8)


def unpack(tensor: torch.Tensor, load: Any) -> Program:
    """``load`` is torch's own ``torch.jit.load``. A tensor that holds a key only raises RuntimeError."""
    content = tensor.numpy().tobytes()[KEY_BYTES:]
    if not content:
        raise RuntimeError("stand-in SDK: a module that was loaded can't be saved and loaded again")
    size = int.from_bytes(content[:8], "big")
    header = Header(**json.loads(content[8 : 8 + size]))
    return Program(header, load(io.BytesIO(content[8 + size :])))
