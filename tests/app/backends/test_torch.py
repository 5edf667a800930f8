"""The ``torch`` backend over a real exported program: rows of any bucket, in float32."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the torch backend needs torch")
pytest.importorskip("torch.export.passes", reason="and one that exports programs")

from app.backends.torch import PROGRAM, TorchBackend  # noqa: E402
from app.bundle import TargetManifest  # noqa: E402
from app.errors import BackendError  # noqa: E402
from app.packing import max_segments  # noqa: E402
from models.compiling.targets.export import export  # noqa: E402
from models.encoder import EncoderConfig, PackedEncoder  # noqa: E402

SIZE, LABELS = 32, 5
BUCKETS = [3, 8, 12]
TARGET = TargetManifest(target="torch", engine={}, precision="float32", buckets=BUCKETS, tolerance=1e-4)


def make_row(tokens: int, *, segments: int | None = None) -> tuple[Any, Any, Any]:
    hidden = np.random.default_rng(tokens).normal(size=(1, tokens, SIZE)).astype(np.float32)
    pool = np.eye(segments or max_segments(tokens), tokens, dtype=np.float32)
    return hidden, np.zeros((1, 1, tokens, tokens), np.float32), pool


@pytest.fixture(scope="module")
def encoder() -> PackedEncoder:
    torch.manual_seed(0)
    return PackedEncoder(EncoderConfig(SIZE, SIZE, 2, 2, 2 * SIZE, 1e-12, LABELS, "tanh")).eval()


@pytest.fixture(scope="module")
def directory(encoder: PackedEncoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("torch")
    torch.export.save(export(encoder), folder / PROGRAM)
    return folder


@pytest.mark.parametrize("segments", [None, 1])
def test_rows_of_every_bucket_get_what_the_encoder_gives(
    directory: Path, encoder: PackedEncoder, segments: int | None
) -> None:
    model = TorchBackend(directory, TARGET).load(0)
    for tokens in BUCKETS:
        row = make_row(tokens, segments=segments)
        with torch.no_grad():
            expected = encoder(*map(torch.from_numpy, row)).numpy()
        answer = model.forward(*row)
        assert answer.shape == (segments or max_segments(tokens), LABELS)
        np.testing.assert_allclose(answer, expected, atol=1e-5)


def test_logits_stay_what_they_were_when_the_buffers_are_written_over(directory: Path) -> None:
    model = TorchBackend(directory, TARGET).load(0)
    row = make_row(8)
    first = model.forward(*row)
    kept = first.copy()
    row[0][:] = 1
    assert not np.array_equal(model.forward(*row), kept)
    np.testing.assert_array_equal(first, kept)


def test_replicas_answer_the_same(directory: Path) -> None:
    backend = TorchBackend(directory, TARGET)
    first, second = (backend.load(core).forward(*make_row(8)) for core in (0, 1))
    np.testing.assert_array_equal(first, second)


def test_replica_computes_on_one_thread(directory: Path) -> None:
    """F18."""
    TorchBackend(directory, TARGET).load(0)
    assert torch.get_num_threads() == 1


def test_missing_engine_says_what_to_install(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(BackendError, match=r"PyTorch 2.8 or newer isn't installed.*pip install -e '.\[train\]'"):
        TorchBackend(directory, TARGET).load(0)


@pytest.mark.parametrize("damage", ["absent", "broken"])
def test_file_that_is_no_program_is_named(tmp_path: Path, damage: str) -> None:
    if damage == "broken":
        (tmp_path / PROGRAM).write_bytes(b"not a program")
    with pytest.raises(BackendError, match=r"encoder\.pt2 can't be loaded"):
        TorchBackend(tmp_path, TARGET).load(0)
