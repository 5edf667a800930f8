"""A real service for a benchmark: started, waited for, measured from outside, stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType

from prometheus_client.parser import text_string_to_metric_families

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


class Service:
    """``query-intent serve`` with these settings on free ports of 127.0.0.1; cache and fallback are off by default.

    ``log`` is the file that gets its log, if somebody wants to read it.
    """

    def __init__(self, log: Path | None = None, /, **settings: object) -> None:
        self._log = Path(os.devnull) if log is None else log
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("QUERY_INTENT_")},
            "QUERY_INTENT_PORT": "0",
            "QUERY_INTENT_OPS_PORT": "0",
            "QUERY_INTENT_CACHE_BYTES": "0",
            "QUERY_INTENT_FALLBACK": "off",
            **{f"QUERY_INTENT_{name.upper()}": str(value) for name, value in settings.items()},
        }

    def __enter__(self) -> Service:
        started = time.perf_counter()
        command = [sys.executable, "-m", "app.cli", "serve"]
        self._process = subprocess.Popen(command, env=self._environment, stderr=subprocess.PIPE, text=True)
        assert self._process.stderr is not None
        first = json.loads(self._process.stderr.readline())
        self.traffic, self.operations = first["traffic"], first["operations"]
        # Read on, or the pipe fills and the service stops in the middle of a log line.
        with self._log.open("wb") as log:
            self._drain = subprocess.Popen(["cat"], stdin=self._process.stderr, stdout=log)
        self._process.stderr.close()  # it is the other process's now
        while not self._is_ready():
            if self._process.poll() is not None:
                raise RuntimeError(f"the service ended with {self._process.returncode} before it was ready")
            time.sleep(0.01)
        self.start_s = time.perf_counter() - started
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.send_signal(signal.SIGTERM)  # nothing happens when it has ended already
        self.wait()
        self._drain.wait(5)

    def send_signal(self, number: signal.Signals) -> None:
        """To the supervisor."""
        self._process.send_signal(number)

    def wait(self) -> int:
        """For its end, which somebody has asked for; its exit code."""
        return self._process.wait(30)

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.operations}/readyz", timeout=1) as reply:
                return bool(reply.status == 200)
        except (urllib.error.URLError, TimeoutError):
            return False

    def processes(self) -> list[int]:
        """The supervisor and its workers."""
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        return [self._process.pid, *map(int, children)]

    def pss_mb(self) -> float:
        """Memory of the whole service: proportional set size over its processes, in MB (10^6 bytes)."""
        total = 0
        for pid in self.processes():
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
        return total * 1024 / 1e6

    def worker_cpu_s(self) -> float:
        """CPU seconds that the workers have used so far."""
        seconds = 0.0
        for pid in self.processes()[1:]:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            seconds += (int(fields[11]) + int(fields[12])) / CLOCK_TICKS
        return seconds

    def samples(self, name: str) -> list[tuple[dict[str, str], float]]:
        """Labels and value of each sample of one metric, as in ``requests_total``, over all workers."""
        with urllib.request.urlopen(f"{self.operations}/metrics", timeout=5) as reply:
            families = list(text_string_to_metric_families(reply.read().decode()))
        return [
            (sample.labels, sample.value)
            for family in families
            for sample in family.samples
            if sample.name == f"query_intent_{name}"
        ]

    def requests(self) -> int:
        """Requests that the service has answered so far, those of a load tester's warm-up with them."""
        return int(sum(value for _, value in self.samples("requests_total")))
