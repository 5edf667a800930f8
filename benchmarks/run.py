"""What the service costs and what latency it holds: ``python -m benchmarks.run``, about 3 minutes on two cores.

Starts the service, sends requests one after another, then open-loop Poisson load at several rates, in rounds so that
a noisy minute falls on every rate; then the same on the null target, which is the service without a model. Prints a
table of medians and writes the figures to benchmarks/results/service.json. Meant for a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from benchmarks.provenance import provenance
from benchmarks.queries import write_queries
from benchmarks.service import Service

RESULTS = Path(__file__).parent / "results"
SEQUENTIAL = 200


def load(
    url: str,
    rate: float,
    duration: float,
    queries: Path | None,
    seed: int,
    *,
    warmup: float = 2,
    connections: int = 64,
    slo_p99_ms: float | None = None,
) -> dict[str, Any]:
    """One run of ``query-intent load`` on a service, or on the whole path that a ``url`` has; its JSON line."""
    if not urllib.parse.urlsplit(url).path:
        url += "/v1/intent"
    command = [sys.executable, "-m", "app.tools.load", "--url", url, "--rate", str(rate)]
    command += ["--duration", str(duration), "--warmup", str(warmup), "--seed", str(seed)]
    command += ["--connections", str(connections)]
    if slo_p99_ms is not None:
        command += ["--slo-p99-ms", str(slo_p99_ms)]
    if queries:
        command += ["--queries", str(queries)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.stdout.strip():
        raise RuntimeError(done.stderr)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def load_service(service: Service, rate: float, duration: float, queries: Path | None, seed: int) -> dict[str, Any]:
    """One run on a service of ours, with the CPU microseconds that its workers took for a request."""
    seconds, requests = service.worker_cpu_s(), service.requests()
    result = load(service.traffic, rate, duration, queries, seed)
    # Counted there and not here: the load tester's figures leave its warm-up out.
    result["worker_cpu_us"] = (service.worker_cpu_s() - seconds) * 1e6 / max(1, service.requests() - requests)
    return result


def one_after_another(url: str, queries: list[str]) -> dict[str, float]:
    """Milliseconds at the client of ``SEQUENTIAL`` requests on one connection."""
    host = urllib.parse.urlsplit(url).netloc
    connection = HTTPConnection(host)
    milliseconds = []
    for number in range(SEQUENTIAL + 20):
        body = json.dumps({"query": queries[number % len(queries)]})
        started = time.perf_counter()
        connection.request("POST", "/v1/intent", body, {"content-type": "application/json"})
        reply = connection.getresponse()
        reply.read()
        if number >= 20:
            milliseconds.append((time.perf_counter() - started) * 1e3)
    connection.close()
    cuts = statistics.quantiles(milliseconds, n=100)
    return {"p50": round(cuts[49], 2), "p99": round(cuts[98], 2)}


def measure(args: argparse.Namespace, queries: Path | None, **settings: object) -> dict[str, Any]:
    lines = queries.read_text().splitlines() if queries else ["red running shoes", "where is my order"]
    with Service(**settings) as service:
        figures: dict[str, Any] = {"start_s": round(service.start_s, 2)}
        figures["one_after_another_ms"] = one_after_another(service.traffic, lines)
        rounds: dict[float, list[dict[str, Any]]] = {rate: [] for rate in args.rates}
        for number in range(args.rounds):
            for rate in args.rates:
                result = load_service(service, rate, args.duration, queries, seed=number)
                rounds[rate].append(result)
                print(f"  {rate:>6g}/s  P99 {result['latency_ms']['p99']:.2f} ms", file=sys.stderr)
        figures["pss_mb"] = round(service.pss_mb())
        figures["rates"] = {f"{rate:g}": summarise(results) for rate, results in rounds.items()}
    return figures


def summarise(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Medians over the rounds, and what should be zero added up."""

    def median(read: Any) -> float:
        return round(statistics.median(read(result) for result in results), 2)

    return {
        "p50_ms": median(lambda r: r["latency_ms"]["p50"]),
        "p99_ms": median(lambda r: r["latency_ms"]["p99"]),
        "p99_ms_of_each_round": [round(r["latency_ms"]["p99"], 2) for r in results],
        "p99_9_ms": median(lambda r: r["latency_ms"]["p99_9"]),
        "not_200": sum(r["sent"] - r["statuses"].get("200", 0) for r in results),
        "worker_cpu_us": median(lambda r: r["worker_cpu_us"]),
        "generator_cpu_us": median(lambda r: r["generator_cpu_us_per_request"]),
        "void_rounds": sum(r["lag"]["void"] for r in results),
    }


def show(title: str, figures: dict[str, Any]) -> None:
    sequential = figures["one_after_another_ms"]
    print(f"\n{title}: ready in {figures['start_s']} s, {figures['pss_mb']} MB, one after another ", end="")
    print(f"P50 {sequential['p50']} ms, P99 {sequential['p99']} ms\n")
    print("| rate | P50 ms | P99 ms | P99.9 ms | not 200 | worker CPU µs | rounds void |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for rate, r in figures["rates"].items():
        print(
            f"| {rate}/s | {r['p50_ms']} | {r['p99_ms']} | {r['p99_9_ms']} | {r['not_200']} | {r['worker_cpu_us']} "
            f"| {r['void_rounds']} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", type=float, nargs="+", default=[100, 250, 400])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--duration", type=float, default=6, help="seconds of each run")
    parser.add_argument("--setting", action="append", default=[], metavar="NAME=VALUE", help="of the service")
    parser.add_argument("--skip-null", action="store_true", help="leave the null target out")
    parser.add_argument("--out", type=Path, default=RESULTS / "service.json")
    args = parser.parse_args()
    settings: dict[str, object] = dict(each.split("=", 1) for each in args.setting)
    with tempfile.TemporaryDirectory() as folder:
        queries: Path | None = Path(folder) / "queries.txt"
        assert queries is not None
        if not write_queries(queries):
            print("QUERY_INTENT_DATA is not set: sending the load tester's own few queries", file=sys.stderr)
            queries = None
        report: dict[str, Any] = {**provenance("run")}
        report["shipped"] = measure(args, queries, **settings)
        show("Shipped bundle", report["shipped"])
        if not args.skip_null:
            args.rates = [1000.0, 2000.0]
            report["null"] = measure(args, queries, **{**settings, "target": "null"})
            show("Null target", report["null"])
    args.out.parent.mkdir(exist_ok=True)
    args.out.write_text(json.dumps(report, indent=1) + "\n")
    print(f"\nwritten to {args.out}", file=sys.stderr)


if __name__ == "__main__":
    main()
