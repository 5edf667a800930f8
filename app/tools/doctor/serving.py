"""A real service on this machine, under a real load: does it start, answer in time, and use every core?"""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.tools.doctor.check import Check, failed, ok, warning
from app.tools.load.report import P99_SHARE

START_TIMEOUT_S = 330.0  # a little over LOAD_TIMEOUT_S, after which the service itself gives up
STOP_TIMEOUT_S = 30.0
# What the load tester's own queries have on average, special tokens included.
TOKENS_A_QUERY = 9
# Of what the table says that the cores could compute: far from saturation, which load and HTTP reach before the model.
SHARE = 0.1
RATES = (20, 2000)
LAST_LINES = 5


@dataclass(frozen=True, slots=True)
class Asked:
    """``port`` 0 takes a free one."""

    bundle: Path
    target: str
    port: int
    seconds: float
    slo_ms: float


def rate_for(tokens_per_second: float) -> float:
    return float(min(max(round(SHARE * tokens_per_second / TOKENS_A_QUERY), RATES[0]), RATES[1]))


def serve_and_load(asked: Asked, rate: float, environ: Mapping[str, str]) -> Iterator[Check]:
    """Checks of the start, the load, and what the service says afterwards; only the first when it doesn't start."""
    with tempfile.TemporaryDirectory(prefix="query-intent-doctor-") as folder, _running(asked, environ, folder) as it:
        started = it.wait_ready()
        yield started
        if started.is_failed:
            return
        yield _load(asked, rate, it, Path(folder) / "load.json")
        yield it.judge()


class _Service:
    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process = process
        self._log = log
        self._started = time.monotonic()
        self.traffic = self.operations = ""

    def wait_ready(self) -> Check:
        deadline = self._started + START_TIMEOUT_S
        while time.monotonic() < deadline and self._process.poll() is None:
            if not self.traffic:
                starting = next((each for each in self._records() if each.get("message") == "starting"), {})
                self.traffic, self.operations = starting.get("traffic", ""), starting.get("operations", "")
            elif (ready := _get(f"{self.operations}/readyz"))[0] == 200:
                seconds = time.monotonic() - self._started
                detail = f"{self.traffic}, ready after {seconds:.1f} s: {ready[1].strip()}"
                return ok("service", detail, seconds=round(seconds, 2), readyz=ready[1].strip())
            time.sleep(0.05)
        why = f"ended with exit code {self._process.poll()}" if self._process.poll() is not None else "never ready"
        said = "\n".join(self._plain_lines()[-LAST_LINES:] or self._log.read_text(errors="replace").splitlines()[-1:])
        return failed("service", f"{why}\n{said}", "its last lines say what to change", log=self._log.read_text())

    def judge(self) -> Check:
        """After the load: everybody is there still, and nothing was logged as an error."""
        status, text = _get(f"{self.operations}/readyz")
        errors = Counter(each["message"] for each in self._records() if each.get("level", "").lower() == "error")
        rows = rows_by_replica(_get(f"{self.operations}/metrics")[1])
        data: dict[str, Any] = {"readyz": text.strip(), "rows": rows, "errors": dict(errors)}
        ready, replicas = _ready(text)
        balance = (
            f"rows on {len(rows)} of them, {min(rows.values(), default=0)} to {max(rows.values(), default=0)} each"
        )
        if status != 200 or ready < replicas:
            lost = f"{text.strip()}; {'; '.join(errors) or 'no error in its log'}"
            return failed("after the load", lost, "a replica was lost under load: see errors in the report", **data)
        if errors:
            said = ", ".join(f"{message} ({count})" for message, count in errors.items())
            return warning(
                "after the load",
                f"{ready} of {replicas} replicas ready, {balance}; errors in the log: {said}",
                "see the report",
                **data,
            )
        return ok("after the load", f"{ready} of {replicas} replicas ready, {balance}", **data)

    def _records(self) -> list[dict[str, Any]]:
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}\n")]

    def _plain_lines(self) -> list[str]:
        """Those for a person."""
        return [line for line in self._log.read_text(errors="replace").splitlines() if not line.startswith("{")]


@contextlib.contextmanager
def _running(asked: Asked, environ: Mapping[str, str], folder: str) -> Iterator[_Service]:
    # Every query is computed, or a fast cache and a fallback would answer for a slow model.
    settings = {
        "host": "127.0.0.1",
        "port": asked.port,
        "ops-host": "127.0.0.1",
        "ops-port": 0,
        "bundle": asked.bundle,
        "target": asked.target,
        "cache-bytes": 0,
        "fallback": "off",
        "drain-delay-s": 0,
        "log-level": "info",
    }
    flags = [f"--{name}={value}" for name, value in settings.items()]
    environ = {name: value for name, value in environ.items() if name != "QUERY_INTENT_WARM_QUERIES"}
    log = Path(folder) / "log"
    with log.open("wb") as stderr:
        process = subprocess.Popen([sys.executable, "-m", "app.cli", "serve", *flags], env=environ, stderr=stderr)
    try:
        yield _Service(process, log)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _load(asked: Asked, rate: float, service: _Service, report: Path) -> Check:
    command = [sys.executable, "-m", "app.cli", "load", f"--url={service.traffic}/v1/intent", f"--rate={rate:g}"]
    command += [f"--duration={asked.seconds:g}", f"--slo-p99-ms={asked.slo_ms:g}", f"--json-out={report}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not report.exists():
        said = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        return failed("load", said[0], "pip install -e '.[load]', or leave the load out: --seconds 0")
    found = json.loads(report.read_text())
    latency, slo = found["latency_ms"], found["slo"]
    detail = (
        f"{rate:g}/s for {asked.seconds:g} s: P50 {latency['p50']} ms, P99 {latency['p99']} ms, "
        f"{slo['within_share'] or 0:.2%} of all within {asked.slo_ms:g} ms, statuses {found['statuses']}"
    )
    if found["errors"]:
        detail += f", errors {found['errors']}"
    in_time = (slo["within_share"] or 0) >= P99_SHARE
    if found["lag"]["void"]:
        remedy = "run it again with nothing else on the machine, or at a lower --rate"
        if in_time:
            return warning("load", f"met, though the load tester itself was late. {detail}", remedy, load=found)
        return failed("load", f"not judged, the load tester itself was late. {detail}", remedy, load=found)
    if not in_time:
        return failed(
            "load",
            f"the objective is missed. {detail}",
            "find what it holds (query-intent load --find-rate); then more cores, a smaller model or another objective",
            load=found,
        )
    return ok("load", detail, load=found)


def rows_by_replica(metrics: str) -> dict[str, int]:
    rows: Counter[str] = Counter()
    for labels, value in re.findall(r"^query_intent_rows_total\{([^}]*)\} (\S+)$", metrics, re.MULTILINE):
        if replica := re.search(r'replica="([^"]*)"', labels):
            rows[replica[1]] += int(float(value))
    return dict(rows)


def _ready(text: str) -> tuple[int, int]:
    found = json.loads(text)
    return int(found["replicas_ready"]), int(found["replicas"])


def _get(url: str) -> tuple[int, str]:
    """Status and body; 0 where nobody answers."""
    try:
        with urllib.request.urlopen(url, timeout=10) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""
