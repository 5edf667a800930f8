"""One row length to compile: everything that its artefact depends on, and where it lies in the work directory."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from app.bundle import sha256
from models import encoder as graph
from models.encoder import PackedEncoder

_DONE = "compiled.json"


@dataclass(frozen=True, slots=True)
class Job:
    """``folder`` is named after all the rest, so what lies in it was made of the same things in the same way."""

    target: str
    folder: str
    weights: str  # safetensors of a PackedEncoder
    config: dict[str, Any]  # its EncoderConfig
    tokens: int
    segments: int
    compiler_args: list[str]
    versions: dict[str, str]

    @property
    def artefact(self) -> Path:
        return Path(self.folder, artefact_name(self.tokens))

    @property
    def log(self) -> Path:
        """What the compiler and whoever called it said."""
        return Path(self.folder, "compiler.log")

    def write(self) -> Path:
        path = Path(self.folder, "job.json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")
        return path

    @classmethod
    def read(cls, path: Path) -> Job:
        return cls(**json.loads(path.read_text(encoding="utf-8")))

    def is_done(self) -> bool:
        """Whether the artefact is here, whole."""
        done = Path(self.folder, _DONE)
        if not (done.is_file() and self.artefact.is_file()):
            return False
        return bool(json.loads(done.read_text(encoding="utf-8"))["sha256"] == sha256(self.artefact))

    def mark_done(self) -> None:
        Path(self.folder, _DONE).write_text(json.dumps({"sha256": sha256(self.artefact)}), encoding="utf-8")


def artefact_name(tokens: int) -> str:
    """In the work directory and in the bundle."""
    return f"row_{tokens}.pt"


def make_jobs(
    encoder: PackedEncoder,
    rows: list[tuple[int, int]],
    workdir: Path,
    *,
    target: str,
    compiler_args: list[str],
    versions: dict[str, str],
) -> list[Job]:
    """A job for each (T, S) of ``rows``, with the weights that they share written beside them."""
    weights_digest = _digest_of_weights(encoder)
    weights = workdir / target / f"encoder-{weights_digest[:12]}.safetensors"
    if not weights.is_file():
        weights.parent.mkdir(parents=True, exist_ok=True)
        unfinished = weights.with_suffix(".part")
        save_file({name: tensor.contiguous() for name, tensor in encoder.state_dict().items()}, unfinished)
        unfinished.rename(weights)
    config = asdict(encoder.config)
    jobs = []
    for tokens, segments in rows:
        # The graph's own source too: the same weights in another graph are another model.
        made_of = [target, weights_digest, sha256(Path(graph.__file__)), config, tokens, segments]
        key = hashlib.sha256(json.dumps([*made_of, compiler_args, versions]).encode()).hexdigest()
        folder = workdir / target / f"row_{tokens}-{key[:12]}"
        jobs.append(Job(target, str(folder), str(weights), config, tokens, segments, compiler_args, versions))
    return jobs


def _digest_of_weights(encoder: PackedEncoder) -> str:
    digest = hashlib.sha256()
    for name, tensor in sorted(encoder.state_dict().items()):
        digest.update(f"{name} {list(tensor.shape)}".encode())
        digest.update(tensor.to(torch.float32).contiguous().numpy().tobytes())
    return digest.hexdigest()
