"""A real ``query-intent serve`` in processes of its own: start it, talk to it, read its logs and metrics, stop it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from prometheus_client.parser import text_string_to_metric_families

from benchmarks.raw_http import Closed, Connection, Reply, post, request

PATIENCE_S = 60.0  # of a machine that is busy with other things; nothing here should come near it
COMMAND = Path(sys.executable).with_name("query-intent")

Address = tuple[str, int]


def wait_until(is_so: Callable[[], Any], *, for_s: float = PATIENCE_S) -> Any:
    """The first truth that ``is_so`` returns; an AssertionError after ``for_s`` seconds without one."""
    deadline = time.monotonic() + for_s
    while not (found := is_so()):
        assert time.monotonic() < deadline, f"waited {for_s:g} s in vain for {is_so}"
        time.sleep(0.02)
    return found


def is_alive(pid: int) -> bool:
    """Whether a process runs; a dead one that nobody has waited for yet does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


@contextlib.contextmanager
def stopped(pid: int) -> Iterator[None]:
    """A process that hangs: it is alive and does nothing."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


class RunningService:
    """``settings`` are those of the service without their prefix: ``RunningService(folder, null_ms=50)``.

    Both ports are free ones, the model is the null target and there is no cache unless said otherwise: most tests are
    about what happens to a query that is computed, and ask the same one again and again.
    """

    def __init__(self, folder: Path, *, stdin: int = subprocess.DEVNULL, **settings: object) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.log = folder / "stderr"
        self.output = folder / "stdout"
        chosen = {"target": "null", "port": 0, "ops_port": 0, "replicas": 2, "workers": 1, "cache_bytes": 0}
        chosen |= settings
        foreign = {name: value for name, value in os.environ.items() if not name.startswith("QUERY_INTENT_")}
        own = {f"QUERY_INTENT_{name.upper()}": str(value) for name, value in chosen.items()}
        with self.log.open("wb") as stderr, self.output.open("wb") as stdout:
            self.process = subprocess.Popen(
                [COMMAND, "serve"], env=foreign | own, stdin=stdin, stdout=stdout, stderr=stderr
            )

    def __enter__(self) -> RunningService:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        """End everything that still runs, without ceremony."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(PATIENCE_S / 4)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for pid in self.worker_pids:
            if is_alive(pid):
                os.kill(pid, signal.SIGKILL)
        for folder in self.files:  # of a supervisor that was killed
            shutil.rmtree(folder, ignore_errors=True)

    # What it says.

    @property
    def text(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    @property
    def records(self) -> list[dict[str, Any]]:
        """The log's records, the complete ones."""
        lines = self.text.splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}\n")]

    @property
    def plain_lines(self) -> list[str]:
        """What was written for a person and not for a collector of logs."""
        return [line for line in self.text.splitlines() if not line.startswith("{")]

    def records_of(self, message: str) -> list[dict[str, Any]]:
        return [record for record in self.records if record["message"] == message]

    @property
    def worker_pids(self) -> list[int]:
        """Of every worker that was ever started, in that order."""
        return [record["pid"] for record in self.records_of("worker started")]

    @property
    def files(self) -> list[Path]:
        """What it keeps in shared memory: its status board and its metrics."""
        return list(Path("/dev/shm").glob(f"query-intent-{self.process.pid}-*"))

    # Where it is.

    @property
    def traffic(self) -> Address:
        return self._address("traffic")

    @property
    def operations(self) -> Address:
        return self._address("operations")

    def _address(self, port: str) -> Address:
        def announced() -> list[dict[str, Any]]:
            assert self.process.poll() is None or self.records, self.text
            return self.records_of("starting")

        url = urlsplit(wait_until(announced)[0][port])
        assert url.hostname
        assert url.port
        return url.hostname, url.port

    # How it is.

    def wait_ready(self) -> RunningService:
        def ready() -> bool:
            assert self.process.poll() is None, self.text
            return self.ops("/readyz").status == 200

        wait_until(ready)
        return self

    def wait_exit(self) -> int:
        return self.process.wait(PATIENCE_S)

    def ops(self, path: str) -> Reply:
        with Connection(self.operations) as connection:
            return connection.request(request("GET", path, "Connection: close"))

    def ops_status(self, path: str) -> int | None:
        """None where the operations port is closed."""
        with contextlib.suppress(OSError, Closed):
            return self.ops(path).status
        return None

    def metrics(self) -> dict[str, float]:
        """Sample lines such as ``rows_total{bucket="16",replica="0.0"}``, without prefix and with sorted labels."""
        return parse_metrics(self.ops("/metrics").body)

    def total(self, name: str, **labels: str) -> float:
        """The sum over all samples of this name that have these labels."""
        wanted = [f'{label}="{value}"' for label, value in labels.items()]
        return sum(
            value
            for sample, value in self.metrics().items()
            if sample.partition("{")[0] == name and all(label in sample for label in wanted)
        )

    def wait_until_read(self) -> None:
        """Until a worker has read everything that was sent before: a later request has its answer."""
        for _ in range(2):
            assert self.get("/healthz").status == 200

    # What it answers.

    def connect(self) -> Connection:
        return Connection(self.traffic)

    def get(self, path: str, *headers: str) -> Reply:
        return self.send(request("GET", path, *headers))

    def classify(self, query: str, *headers: str, **fields: Any) -> Reply:
        return self.send(post("/v1/intent", {"query": query} | fields, *headers))

    def classify_list(self, queries: list[str], **fields: Any) -> Reply:
        return self.send(post("/v1/intents", {"queries": queries} | fields))

    def send(self, data: bytes) -> Reply:
        with self.connect() as connection:
            return connection.request(data)


def parse_metrics(text: bytes) -> dict[str, float]:
    samples = {}
    for family in text_string_to_metric_families(text.decode()):
        for sample in family.samples:
            labels = ",".join(f'{name}="{value}"' for name, value in sorted(sample.labels.items()))
            samples[sample.name.removeprefix("query_intent_") + (f"{{{labels}}}" if labels else "")] = sample.value
    return samples
