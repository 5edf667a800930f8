"""What a request costs beside the model: ``python -m benchmarks.hot_path``, 5 minutes on two quiet cores.

The null target against a bare ASGI endpoint that parses and writes the same JSON (``benchmarks/bare_asgi.py``), in
interleaved rounds, so that what this machine makes of a system call is in both:

- CPU microseconds of the worker for a request under open-loop Poisson load;
- requests a second of one worker whose threads share one core, as fast as 64 connections of wrk take them from another
  core (left out where there is no wrk).

Then the shipped bundle, one request after another: what ``total`` has beside ``inference``. Medians; writes
benchmarks/results/hot_path.json.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from benchmarks.provenance import provenance
from benchmarks.queries import write_queries
from benchmarks.run import RESULTS, SEQUENTIAL, load, load_service
from benchmarks.service import CLOCK_TICKS, Service

CONNECTIONS = 64
WRK_SCRIPT = """
local queries, next_query = {}, 0
for line in io.lines("%s") do queries[#queries + 1] = line:gsub('[\\\\"]', "") end
function request()
  next_query = next_query %% #queries + 1
  return wrk.format("POST", nil, {["content-type"] = "application/json"}, '{"query":"' .. queries[next_query] .. '"}')
end
"""


class Bare:
    """The yardstick as a process."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._process = subprocess.Popen([sys.executable, "-m", "benchmarks.bare_asgi", str(port)])
        self.pid = self._process.pid
        self.traffic = f"http://127.0.0.1:{port}"
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                return
            time.sleep(0.01)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(10)

    def load(self, rate: float, duration: float, queries: Path | None, seed: int) -> dict[str, Any]:
        before = self._cpu_s()
        result = load(self.traffic, rate, duration, queries, seed, warmup=0)
        result["worker_cpu_us"] = (self._cpu_s() - before) * 1e6 / result["completed"]
        return result

    def _cpu_s(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS


@contextlib.contextmanager
def bare() -> Iterator[Bare]:
    server = Bare()
    try:
        yield server
    finally:
        server.stop()


def saturate(url: str, queries: Path, seconds: int, core: int) -> float:
    """Requests a second that wrk gets from ``core``. Raises RuntimeError when one was refused."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(WRK_SCRIPT % queries)
        script.flush()
        command = ["taskset", "-c", str(core), "wrk", "-t", "1", "-c", str(CONNECTIONS), "-d", f"{seconds}s"]
        done = subprocess.run([*command, "-s", script.name, f"{url}/v1/intent"], capture_output=True, text=True)
    rate = re.search(r"Requests/sec:\s+([\d.]+)", done.stdout)
    if rate is None or "Non-2xx" in done.stdout or "Socket errors" in done.stdout:
        raise RuntimeError(done.stdout + done.stderr)
    return float(rate[1])


def pin(pid: int, core: int) -> None:
    """Keep all threads that a process has, and those that it will start, on one core."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(task.name), {core})


def beside_the_model(queries: list[str]) -> dict[str, float]:
    """Milliseconds of ``total`` and of ``total`` less ``inference``, of requests to the shipped bundle one by one."""
    totals, beside = [], []
    with Service() as service:
        connection = HTTPConnection(urllib.parse.urlsplit(service.traffic).netloc)
        for number in range(SEQUENTIAL + 20):
            body = json.dumps({"query": queries[number % len(queries)]})
            connection.request("POST", "/v1/intent", body, {"content-type": "application/json"})
            reply = connection.getresponse()
            reply.read()
            stages = dict(re.findall(r"(\w+);dur=([\d.]+)", reply.headers["server-timing"]))
            if number >= 20:
                totals.append(float(stages["total"]))
                beside.append(float(stages["total"]) - float(stages["inference"]))
        connection.close()
    cuts = statistics.quantiles(beside, n=100)
    return {
        "total_p50": round(statistics.median(totals), 3),
        "beside_inference_p50": round(cuts[49], 3),
        "beside_inference_p99": round(cuts[98], 3),
    }


def spread(values: list[float]) -> dict[str, Any]:
    return {"median": round(statistics.median(values), 1), "of_each_round": [round(value, 1) for value in values]}


def measure(args: argparse.Namespace, queries: Path) -> dict[str, Any]:
    cpu: dict[str, dict[float, list[float]]] = {name: {rate: [] for rate in args.rates} for name in ("ours", "bare")}
    generator: list[float] = []
    rates: dict[str, list[float]] = {"ours": [], "bare": []}
    for number in range(args.rounds):
        with Service(target="null", workers=1) as service:
            for rate in args.rates:
                result = load_service(service, rate, args.duration, queries, seed=number)
                cpu["ours"][rate].append(result["worker_cpu_us"])
                generator.append(result["generator_cpu_us_per_request"])
        with bare() as yardstick:
            for rate in args.rates:
                cpu["bare"][rate].append(yardstick.load(rate, args.duration, queries, number)["worker_cpu_us"])
        if shutil.which("wrk"):
            with Service(target="null", workers=1, replicas=1, timeout_ms=1000) as service:
                pin(service.processes()[1], 0)
                rates["ours"].append(saturate(service.traffic, queries, args.duration, core=1))
            with bare() as yardstick:
                pin(yardstick.pid, 0)
                rates["bare"].append(saturate(yardstick.traffic, queries, args.duration, core=1))
        print(f"  round {number + 1} of {args.rounds}", file=sys.stderr)
    report: dict[str, Any] = {"generator_cpu_us": round(statistics.median(generator), 1), "worker_cpu_us": {}}
    for rate in args.rates:
        report["worker_cpu_us"][f"{rate:g}"] = {name: spread(cpu[name][rate]) for name in cpu}
    if rates["ours"]:
        report["requests_per_second_on_one_core"] = {name: spread(values) for name, values in rates.items()}
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", type=float, nargs="+", default=[1000, 2000, 5000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--duration", type=int, default=3, help="seconds of each run")
    parser.add_argument("--out", type=Path, default=RESULTS / "hot_path.json")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        queries = Path(folder) / "queries.txt"
        if not write_queries(queries):
            raise SystemExit("benchmarks.hot_path sends people's own queries: let QUERY_INTENT_DATA name the raw data")
        report: dict[str, Any] = {**provenance("hot_path")}
        report |= measure(args, queries)
        report["one_after_another_ms"] = beside_the_model(queries.read_text().splitlines())
    args.out.parent.mkdir(exist_ok=True)
    args.out.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
