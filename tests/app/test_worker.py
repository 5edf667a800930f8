"""How a worker sets its interpreter up, seen from inside of one whose server reports instead of serving."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from app.metrics import render_shared
from app.orders import Orders
from app.settings import Settings
from app.status_board import StatusBoard
from tests.app.service.running import parse_metrics

# In place of serving: wait until the model has been loaded, then tell and stop.
REPORTER = """
import asyncio, gc, json, sys
import app.worker as worker

async def report(server, sockets):
    while not server.config.app.readiness().is_ready:
        await asyncio.sleep(0.01)
    gc.collect()
    print(json.dumps({"switch_interval_s": sys.getswitchinterval(), "frozen": gc.get_freeze_count(),
                      "young": len(gc.get_objects())}))

worker.HttpServer.serve = report
worker.main()
"""


@pytest.fixture(scope="module")
def interpreter(tiny_bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    folder = tmp_path_factory.mktemp("worker")
    (folder / "metrics").mkdir()
    StatusBoard.create(folder / "board", 1).close()
    lifeline, held = os.pipe()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        orders = Orders(
            settings=Settings.model_validate({"target": "null", "replicas": 1}),
            bundle=tiny_bundle,
            address=str(tiny_bundle),
            index=0,
            slot=0,
            workers=1,
            replicas=1,
            socket_fd=listening.fileno(),
            lifeline_fd=lifeline,
            board=folder / "board",
            metrics=folder / "metrics",
        )
        done = subprocess.run(
            [sys.executable, "-c", REPORTER, orders.model_dump_json()],
            pass_fds=(listening.fileno(), lifeline),
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
    os.close(lifeline)
    os.close(held)
    assert done.returncode == 0, done.stderr
    report: dict[str, float] = json.loads(done.stdout)
    samples = parse_metrics(render_shared(folder / "metrics"))
    return report | {"full_collections": samples['gc_pause_seconds_count{generation="2"}']}


def test_a_thread_in_python_code_gives_the_loop_its_turn_within_half_a_millisecond(
    interpreter: dict[str, float],
) -> None:
    """F21: CPython's own 5 ms are half of the objective."""
    assert interpreter["switch_interval_s"] == pytest.approx(0.0005)


def test_what_the_start_made_is_nothing_that_the_collector_looks_at(interpreter: dict[str, float]) -> None:
    """F22: a full collection looks at what came since, not at every module, schema and token."""
    assert interpreter["frozen"] > 20 * interpreter["young"]


def test_a_collection_is_measured_once_there_is_traffic(interpreter: dict[str, float]) -> None:
    """F22: the one that the reporter asked for; that of the start stopped nobody."""
    assert interpreter["full_collections"] == 1
