"""Who is measured: our service and the peers, each a real server on 127.0.0.1 with the same model."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import tempfile
import time
import urllib.parse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.settings import Settings
from benchmarks.peers.environments import HERE, HOME, python_of
from benchmarks.peers.settings import ROUTE, PeerSettings, Tuning
from benchmarks.service import Service

MODEL = HOME / "model"
START_S = 180
STOP_S = 15

# What can be done with two cores: a copy of the model on each, one on both, or one that leaves a core to HTTP; a batch
# waits as short as it can (both count in milliseconds, and 0 is mosec's word for 10 and has LitServe poll without a
# pause), or for the time of a forward. The first is taken where nothing is tried.
TUNINGS = [
    Tuning(processes=2, threads=1, max_batch=16, wait_ms=1),
    Tuning(processes=2, threads=1, max_batch=16, wait_ms=3),
    Tuning(processes=1, threads=2, max_batch=16, wait_ms=1),
    Tuning(processes=1, threads=1, max_batch=16, wait_ms=1),
]
PEERS = ("mosec", "litserve")
OURS = "query-intent"


@dataclass(frozen=True, slots=True)
class Running:
    url: str  # where to POST {"query": …}
    start_s: float  # until everything was warm


@contextlib.contextmanager
def ours(bundle: Path) -> Iterator[Running]:
    """Our service with nothing that answers for the model."""
    settings: dict[str, object] = {"bundle": bundle, "cache_bytes": 0}
    if "fallback" in Settings.model_fields:
        settings["fallback"] = "off"
    with Service(**settings) as service:
        yield Running(f"{service.traffic}/v1/intent", service.start_s)


@contextlib.contextmanager
def peer(name: str, tuning: Tuning) -> Iterator[Running]:
    """A peer in its own environment. Raises ``RuntimeError`` with the end of its log when it doesn't come up."""
    python = python_of(name)
    with tempfile.TemporaryDirectory() as folder:
        warm, log = Path(folder) / "warm", Path(folder) / "log"
        warm.mkdir()
        settings = PeerSettings(MODEL, warm, _free_port(), tuning)
        root = HERE.parent.parent
        environment = os.environ | settings.as_environment() | {"PYTHONPATH": str(root)}
        started = time.perf_counter()
        with log.open("wb") as out:
            # A session of its own, so that whatever it starts can be ended with it.
            process = subprocess.Popen(
                [python, "-m", f"benchmarks.peers.{name}_server"],
                env=environment,
                cwd=folder,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            url = f"http://127.0.0.1:{settings.port}{ROUTE}"
            while len(list(warm.iterdir())) < tuning.processes or not _answers(url):
                if process.poll() is not None or time.perf_counter() - started > START_S:
                    raise RuntimeError(f"{name} did not come up:\n{log.read_text(errors='replace')[-2000:]}")
                time.sleep(0.02)
            yield Running(url, time.perf_counter() - started)
        finally:
            _stop(process)


def intents(url: str, queries: Sequence[str]) -> list[str]:
    """What a server answers to each, one after another. Raises ``RuntimeError`` for anything but a 200."""
    return [_ask(url, query)["intent"] for query in queries]


def _ask(url: str, query: str) -> dict[str, str]:
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=5)
    try:
        connection.request("POST", parts.path, json.dumps({"query": query}), {"content-type": "application/json"})
        reply = connection.getresponse()
        body = reply.read()
    finally:
        connection.close()
    if reply.status != 200:
        raise RuntimeError(f"{url} answered {reply.status} to {query!r}: {body[:200]!r}")
    answer: dict[str, str] = json.loads(body)
    return answer


def _answers(url: str) -> bool:
    try:
        return bool(_ask(url, "red shoes"))
    except (OSError, RuntimeError, http.client.HTTPException):
        return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Both end on Ctrl-C; what is left of their processes after that is killed."""
    process.send_signal(signal.SIGINT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(STOP_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port
