"""The stand-in for a model: answers at once, or after a fixed time, from a query's own tokens."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from app.backends import make_backend
from app.backends.null import NullBackend
from app.bundle import Bundle, TargetManifest
from app.packing import RowBuffers
from tests.fakes import query

SHORT, LONG, OTHER = query(2, 5, 3), query(2, 7, 8, 9, 3), query(2, 6, 6, 3)


def row(bundle: Path, tokens: int = 32) -> RowBuffers:
    return RowBuffers(tokens, Bundle(bundle).embeddings(), pooling="mean")


def test_it_gives_each_query_one_logit_a_label(tiny_bundle: Path) -> None:
    buffers, model = row(tiny_bundle), NullBackend(labels=9, milliseconds=0).load(0)
    buffers.fill([SHORT, LONG])
    logits = model.forward(buffers.hidden, buffers.mask, buffers.pool)
    assert logits.shape == (buffers.segments, 9)
    assert logits.dtype == np.float32
    assert not np.allclose(logits[0], logits[1])
    model.close()


def test_the_answer_depends_on_the_query_and_not_on_neighbours_place_or_bucket(tiny_bundle: Path) -> None:
    """F33."""
    model = NullBackend(labels=9, milliseconds=0).load(0)
    alone, among = row(tiny_bundle, 8), row(tiny_bundle, 32)
    alone.fill([LONG])
    among.fill([SHORT, OTHER, LONG])
    np.testing.assert_allclose(
        model.forward(alone.hidden, alone.mask, alone.pool)[0],
        model.forward(among.hidden, among.mask, among.pool)[2],
        atol=1e-6,
    )


@pytest.mark.parametrize(("milliseconds", "slept"), [(0, []), (2.5, [0.0025])])
def test_a_row_takes_the_time_it_is_told_to(
    tiny_bundle: Path, monkeypatch: pytest.MonkeyPatch, milliseconds: float, slept: list[float]
) -> None:
    seconds: list[float] = []
    monkeypatch.setattr(time, "sleep", seconds.append)
    buffers = row(tiny_bundle)
    buffers.fill([SHORT])
    NullBackend(labels=9, milliseconds=milliseconds).load(0).forward(buffers.hidden, buffers.mask, buffers.pool)
    assert seconds == slept


def target(name: str) -> TargetManifest:
    return TargetManifest(target=name, engine={}, precision="none", buckets=[8], tolerance=0)


def test_the_null_target_needs_no_files(tmp_path: Path) -> None:
    backend = make_backend(tmp_path / "nowhere", target("null"), labels=9, null_ms=0)
    assert isinstance(backend, NullBackend)


def test_a_target_without_a_backend_is_a_bug(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="'fake' has no backend"):
        make_backend(tmp_path, target("fake"), labels=9, null_ms=0)
