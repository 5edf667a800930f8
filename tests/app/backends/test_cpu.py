"""The ``cpu`` backend over a real OpenVINO model: right in every bucket, and one replica never waits for another."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("openvino", reason="the cpu backend needs OpenVINO")
torch = pytest.importorskip("torch", reason="the model is made with torch")

import openvino as ov  # noqa: E402

from app.backends import cpu  # noqa: E402
from app.backends.cpu import MODEL, CpuBackend  # noqa: E402
from app.bundle import TargetManifest  # noqa: E402
from app.errors import BackendError  # noqa: E402
from app.packing import max_segments  # noqa: E402
from models.compiling.targets.cpu import convert  # noqa: E402
from models.encoder import EncoderConfig, PackedEncoder  # noqa: E402

SIZE, LABELS = 32, 5
BUCKETS = [3, 8, 12]
LONG = 1024


def make_target(*buckets: int, one_query_a_row: bool = False) -> TargetManifest:
    return TargetManifest(
        target="cpu",
        engine={"openvino": ov.__version__},
        precision="float32",
        buckets=list(buckets),
        one_query_a_row=one_query_a_row,
        tolerance=1e-4,
    )


def make_row(tokens: int, *, segments: int | None = None, seed: int = 0) -> tuple[Any, Any, Any]:
    random = np.random.default_rng(seed)
    hidden = random.normal(size=(1, tokens, SIZE)).astype(np.float32)
    pool = np.eye(segments or max_segments(tokens), tokens, dtype=np.float32)
    return hidden, np.zeros((1, 1, tokens, tokens), np.float32), pool


@pytest.fixture(scope="module")
def encoder() -> PackedEncoder:
    torch.manual_seed(0)
    return PackedEncoder(EncoderConfig(SIZE, SIZE, 2, 2, 2 * SIZE, 1e-12, LABELS, "tanh")).eval()


@pytest.fixture(scope="module")
def directory(encoder: PackedEncoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A target's folder; in float32, so that answers can be compared closely."""
    folder = tmp_path_factory.mktemp("cpu")
    ov.save_model(convert(encoder), folder / MODEL, compress_to_fp16=False)
    return folder


def test_rows_of_every_bucket_get_what_pytorch_gives(directory: Path, encoder: PackedEncoder) -> None:
    model = CpuBackend(directory, make_target(*BUCKETS)).load(0)
    for tokens in BUCKETS:
        row = make_row(tokens, seed=tokens)
        with torch.no_grad():
            expected = encoder(*map(torch.from_numpy, row)).numpy()
        answer = model.forward(*row)
        assert answer.shape == (max_segments(tokens), LABELS)
        assert answer.dtype == np.float32
        np.testing.assert_allclose(answer, expected, atol=1e-5)


def test_target_may_take_one_query_a_row(directory: Path) -> None:
    model = CpuBackend(directory, make_target(12, one_query_a_row=True)).load(0)
    assert model.forward(*make_row(12, segments=1)).shape == (1, LABELS)


def test_logits_stay_what_they_were_when_the_buffers_are_written_over(directory: Path) -> None:
    model = CpuBackend(directory, make_target(8)).load(0)
    row = make_row(8)
    first = model.forward(*row)
    kept = first.copy()
    row[0][:] = 1
    assert not np.array_equal(model.forward(*row), kept)
    np.testing.assert_array_equal(first, kept)


def test_buffers_are_left_as_they_were(directory: Path) -> None:
    row = make_row(8)
    before = [array.copy() for array in row]
    CpuBackend(directory, make_target(8)).load(0).forward(*row)
    for left, right in zip(row, before, strict=True):
        np.testing.assert_array_equal(left, right)


def test_replicas_answer_the_same(directory: Path) -> None:
    backend = CpuBackend(directory, make_target(8))
    first, second = (backend.load(core).forward(*make_row(8)) for core in (0, 1))
    np.testing.assert_array_equal(first, second)


def test_each_replica_compiles_its_own_model_for_every_bucket(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F18. Two threads on one single-stream model take turns."""
    compiled: list[tuple[int, dict[str, object]]] = []
    compile_model = ov.Core.compile_model

    def counted(self: ov.Core, model: ov.Model, device: str, properties: dict[str, object]) -> ov.CompiledModel:
        compiled.append((model.input("hidden").shape[1], properties))
        return compile_model(self, model, device, properties)

    monkeypatch.setattr(ov.Core, "compile_model", counted)
    backend = CpuBackend(directory, make_target(*BUCKETS))
    replicas = [backend.load(core) for core in (0, 1)]
    assert sorted(tokens for tokens, _ in compiled) == sorted(BUCKETS * len(replicas))
    for _, properties in compiled:
        assert (properties["NUM_STREAMS"], properties["INFERENCE_NUM_THREADS"]) == (1, 1)
        assert properties["ENABLE_CPU_PINNING"] is False
        assert properties["INFERENCE_PRECISION_HINT"] == "f32"


def test_no_two_replicas_make_their_first_calls_at_once(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads in the binding's first inference have been seen to wait for each other for ever."""
    inside, most = 0, 0
    run_once = cpu._run_once

    def watched(compiled: ov.CompiledModel) -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        run_once(compiled)
        inside -= 1

    monkeypatch.setattr(cpu, "_run_once", watched)
    backend = CpuBackend(directory, make_target(*BUCKETS))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(backend.load, range(4)))
    assert most == 1


def test_short_rows_of_one_replica_end_while_a_long_row_of_another_runs(directory: Path) -> None:
    """Would replicas wait for one another, the first short row would end after the long one."""
    backend = CpuBackend(directory, make_target(8, LONG))
    long_replica, short_replica = backend.load(0), backend.load(1)
    long_row, short_row = make_row(LONG), make_row(8)
    started, ended = threading.Event(), threading.Event()

    def run_long_row() -> None:
        started.set()
        long_replica.forward(*long_row)
        ended.set()

    thread = threading.Thread(target=run_long_row)
    thread.start()
    started.wait()
    short_rows = 0
    while short_rows < 5 and not ended.is_set():
        short_replica.forward(*short_row)
        short_rows += not ended.is_set()
    thread.join()
    assert short_rows == 5


def test_closed_model_lets_its_memory_go(directory: Path) -> None:
    model = CpuBackend(directory, make_target(8)).load(0)
    model.close()
    with pytest.raises(KeyError):
        model.forward(*make_row(8))


def test_missing_engine_says_what_to_install(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(BackendError, match=r"OpenVINO isn't installed.*pip install -e '.\[cpu\]'"):
        CpuBackend(directory, make_target(8)).load(0)


@pytest.mark.parametrize("damage", ["absent", "broken"])
def test_file_that_is_no_model_is_named(tmp_path: Path, damage: str) -> None:
    if damage == "broken":
        (tmp_path / MODEL).write_text("<net>")
    with pytest.raises(BackendError, match=r"model\.xml can't be loaded"):
        CpuBackend(tmp_path, make_target(8)).load(0)


def test_loading_it_is_reported_to_nobody(directory: Path, tmp_path: Path) -> None:
    """OpenVINO's telemetry, which is on without asking, keeps its state in the home directory."""
    home = tmp_path / "home"
    home.mkdir()
    foreign = {name: value for name, value in os.environ.items() if name != "CI"}  # it is off there by itself
    program = (
        "import sys; from pathlib import Path;"
        "from app.backends.cpu import CpuBackend; from app.bundle import TargetManifest;"
        "CpuBackend(Path(sys.argv[1]), TargetManifest.model_validate_json(sys.argv[2])).load(0);"
        "assert sys.modules['openvino'], 'not loaded'"
    )
    arguments = [str(directory), make_target(8).model_dump_json()]
    subprocess.run(
        [sys.executable, "-c", program, *arguments], env=foreign | {"HOME": str(home)}, check=True, timeout=100
    )
    assert list(home.iterdir()) == []
