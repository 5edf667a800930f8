from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="pictures need matplotlib")

from app.tools.simulation.picture import draw
from tests.app.tools.simulation.test_table import FIGURES

SWEEP = [
    FIGURES,
    dataclasses.replace(FIGURES, rate=20_000.0, p99_ms=12.0),
    dataclasses.replace(FIGURES, rate=24_000.0, p50_ms=None, p99_ms=None, p99_9_ms=None),
]


@pytest.mark.parametrize(
    ("name", "magic"), [("sweep.png", b"\x89PNG"), ("sweep.svg", b"<?xml"), ("sweep.pdf", b"%PDF")]
)
def test_it_is_written_in_the_format_of_its_name(tmp_path: Path, name: str, magic: bytes) -> None:
    draw(SWEEP, slo_ms=10.0, title="16 cores", path=tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(magic)


def test_it_says_what_is_drawn(tmp_path: Path) -> None:
    draw(SWEEP, slo_ms=10.0, title="16 cores", path=tmp_path / "sweep.svg")
    drawn = (tmp_path / "sweep.svg").read_text()
    # Texts are drawn as outlines, with what they say in a comment.
    for text in ("16 cores", "P50", "P99", "P99.9", "objective, 10 ms", "row fill", "queries a second"):
        assert f"<!-- {text} -->" in drawn
