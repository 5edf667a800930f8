"""The status board: a line for each worker in shared memory."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from app.status_board import EMPTY, Line, StatusBoard, WorkerState


def test_a_new_board_says_that_no_worker_is_there(tmp_path: Path) -> None:
    assert StatusBoard.create(tmp_path / "board", 3).read() == [EMPTY] * 3


def test_what_a_worker_writes_the_supervisor_reads(tmp_path: Path) -> None:
    board = StatusBoard.create(tmp_path / "board", 3)
    line = Line(4321, WorkerState.SERVING, 2, 1, 1234.5678, connections=7, out=0b10)
    worker = StatusBoard(tmp_path / "board")
    worker.write(1, line)
    assert board.read() == [EMPTY, line, EMPTY]
    worker.write(1, EMPTY)
    assert board.read() == [EMPTY] * 3
    worker.close()
    board.close()


def test_a_line_names_the_replicas_that_are_out() -> None:
    assert EMPTY.replicas_out() == set()
    assert EMPTY._replace(out=1 << 63 | 0b1001).replicas_out() == {0, 3, 63}


@pytest.mark.parametrize("workers", [1, 256])
def test_each_worker_has_its_own_line(tmp_path: Path, workers: int) -> None:
    board = StatusBoard.create(tmp_path / "board", workers)
    lines = [Line(index + 1, WorkerState.LOADING, 2, 0, float(index)) for index in range(workers)]
    for index, line in enumerate(lines):
        board.write(index, line)
    assert board.read() == lines


def test_there_is_no_line_past_the_last(tmp_path: Path) -> None:
    board = StatusBoard.create(tmp_path / "board", 2)
    with pytest.raises(struct.error, match="requires a buffer of at least"):
        board.write(2, EMPTY)
    assert board.read() == [EMPTY] * 2
