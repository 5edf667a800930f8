"""What was compiled is known again by everything that it was made of, and by nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="compiling needs torch")

import torch

from models.compiling.neuron.job import Job, make_jobs
from models.encoder import EncoderConfig, PackedEncoder

CONFIG = EncoderConfig(
    embedding_size=8,
    hidden_size=8,
    layers=1,
    heads=2,
    intermediate_size=8,
    layer_norm_eps=1e-12,
    labels=2,
    head_activation="tanh",
)


def make_encoder(seed: int = 0) -> PackedEncoder:
    torch.manual_seed(seed)
    return PackedEncoder(CONFIG).eval()


def jobs(workdir: Path, encoder: PackedEncoder | None = None, **changes: Any) -> list[Job]:
    order: dict[str, Any] = {"target": "inf1", "compiler_args": ["--fast-math", "all"], "versions": {"torch": "1.13.1"}}
    return make_jobs(encoder or make_encoder(), [(32, 10), (64, 21)], workdir, **(order | changes))


def test_the_same_order_finds_the_same_folders(tmp_path: Path) -> None:
    first, second = jobs(tmp_path), jobs(tmp_path)
    assert first == second
    assert len({job.folder for job in first}) == 2
    assert first[0].artefact.name == "row_32.pt"
    assert Job.read(first[0].write()) == first[0]


def test_whatever_changes_the_artefact_changes_its_folder(tmp_path: Path) -> None:
    orders = (
        jobs(tmp_path),
        jobs(tmp_path, make_encoder(seed=1)),
        jobs(tmp_path, target="inf2"),
        jobs(tmp_path, compiler_args=["--fast-math", "none"]),
        jobs(tmp_path, versions={"torch": "1.13.0"}),
        make_jobs(
            make_encoder(),
            [(32, 1)],
            tmp_path,
            target="inf1",
            compiler_args=["--fast-math", "all"],
            versions={"torch": "1.13.1"},
        ),
    )
    assert len({order[0].folder for order in orders}) == len(orders)


def test_the_weights_are_written_once(tmp_path: Path) -> None:
    first = jobs(tmp_path)
    assert {job.weights for job in first} == {job.weights for job in jobs(tmp_path, compiler_args=["x"])}
    assert [path.name for path in (tmp_path / "inf1").iterdir()] == [Path(first[0].weights).name]


def test_only_a_whole_artefact_is_done(tmp_path: Path) -> None:
    job = jobs(tmp_path)[0]
    job.write()
    assert not job.is_done()
    job.artefact.write_bytes(b"compiled")
    assert not job.is_done()
    job.mark_done()
    assert job.is_done()
    job.artefact.write_bytes(b"damaged")
    assert not job.is_done()
