"""Sixteen NeuronCores that aren't there: ``python -m benchmarks.neuron_standin``, 3 minutes.

The service with its adapter for Inferentia 1 in real processes over the stand-in SDK of the tests, as on an
inf1.6xlarge: four workers of four cores, rows that take 3 ms (32 tokens: 5) with the interpreter free meanwhile, real
HTTP. It shows how the service spreads work, loads, and loses a core; how fast a chip is it can't show. In it:

- how evenly rows are spread over the cores of a worker, and over all 16, by connections;
- a core that fails under that load: what its queries are told, and what readiness says;
- the seconds from a worker's start to its readiness with eight buckets;
- one replica over a worker's cores (``PLACEMENT=data-parallel``) beside a replica on each, with rows of one query.

Writes benchmarks/results/neuron_standin.json.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.provenance import provenance
from benchmarks.run import RESULTS, load
from benchmarks.service import Service
from tests.neuron import NeuronHost, make_neuron_bundle

INSTANCE, CORES = "inf1.6xlarge", 16
ROWS_MS = "16:3,32:5"
EIGHT_BUCKETS = (8, 12, 16, 20, 24, 28, 32, 48)


@contextlib.contextmanager
def serving(folder: Path, bundle: Path, **settings: object) -> Iterator[tuple[NeuronHost, Service]]:
    """A service on a machine of its own; callers wait for 10 s, so that nothing is lost for lack of a CPU."""
    host = NeuronHost(folder, INSTANCE, row_ms=ROWS_MS)
    before = dict(os.environ)
    os.environ.update(host.env)
    try:
        with Service(bundle=bundle, target="auto", timeout_ms=10_000, **settings) as service:
            yield host, service
    finally:
        os.environ.clear()
        os.environ.update(before)


def send(service: Service, args: argparse.Namespace, connections: int, seed: int = 0) -> dict[str, Any]:
    return load(service.traffic, args.rate, args.duration, None, seed, warmup=1, connections=connections)


def balance(service: Service) -> dict[str, Any]:
    """Rows of the core that ran fewest, of those that the one with most ran: in each worker, and over all."""
    rows: Counter[str] = Counter()
    for labels, value in service.samples("rows_total"):
        rows[labels["replica"]] += int(value)
    workers: dict[str, list[int]] = {}
    for replica, count in sorted(rows.items()):
        workers.setdefault(replica.partition(".")[0], []).append(count)
    return {
        "rows": workers,
        "cores_that_ran_any": len(rows),
        "within_a_worker": round(min(min(each) / max(each) for each in workers.values()), 3),
        "over_all": round(min(rows.values()) / max(rows.values()), 3),
    }


def spread_work(folder: Path, bundle: Path, args: argparse.Namespace) -> dict[str, Any]:
    found = {}
    for connections in args.connections:
        with serving(folder / f"balance-{connections}", bundle) as (_, service):
            result = send(service, args, connections)
            found[str(connections)] = balance(service) | {
                "p99_ms": result["latency_ms"]["p99"],
                "statuses": result["statuses"],
                "sent_late": result["lag"],
            }
    return found


def lose_a_core(folder: Path, bundle: Path, args: argparse.Namespace) -> dict[str, Any]:
    with serving(folder / "failing", bundle) as (host, service):
        command = [sys.executable, "-m", "app.tools.load", "--url", f"{service.traffic}/v1/intent"]
        command += [
            "--rate",
            str(args.rate),
            "--duration",
            str(args.duration),
            "--connections",
            str(max(args.connections)),
        ]
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        time.sleep(args.duration / 2)  # in the middle of the load
        host.break_core(5, "1004")
        output, _ = running.communicate()
        result = json.loads(output)
        ready = next(value for _, value in service.samples("replicas_ready"))
        faults = [labels for labels, _ in service.samples("core_faults_total")]
    return {
        "statuses": result["statuses"],
        "errors": result["errors"],
        "p99_ms": result["latency_ms"]["p99"],
        "replicas_ready": int(ready),
        "faults": faults,
    }


def start(folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    bundle = make_neuron_bundle(folder / "eight", buckets=EIGHT_BUCKETS)
    seconds = []
    for number in range(args.starts):
        with serving(folder / f"start-{number}", bundle) as (_, service):
            seconds.append(round(service.start_s, 2))
    return {
        "cores": CORES,
        "buckets": len(EIGHT_BUCKETS),
        "seconds_to_ready": statistics.median(seconds),
        "of_each": seconds,
        "in_parallel": "workers; in a worker loads one after another, warm-up and golden queries beside the next load",
    }


def place(folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    bundle = make_neuron_bundle(folder / "single", one_query_a_row=True)
    runs: dict[str, list[dict[str, Any]]] = {"replicas": [], "data-parallel": []}
    for number in range(args.rounds):
        for placement, results in runs.items():
            with serving(folder / f"{placement}-{number}", bundle, placement=placement) as (_, service):
                results.append(send(service, args, max(args.connections), seed=number))
    return {
        placement: {
            f"p{cut}_ms": round(statistics.median(each["latency_ms"][f"p{cut}"] for each in results), 2)
            for cut in (50, 99)
        }
        | {"statuses": dict(sum((Counter(each["statuses"]) for each in results), Counter()))}
        for placement, results in runs.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, default=800, help="queries a second; two CPUs carry little more")
    parser.add_argument("--duration", type=float, default=6, help="seconds of each run")
    parser.add_argument("--connections", type=int, nargs="+", default=[64, 512])
    parser.add_argument("--rounds", type=int, default=3, help="of the placements")
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--out", type=Path, default=RESULTS / "neuron_standin.json")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bundle = make_neuron_bundle(folder / "packed")
        report: dict[str, Any] = {**provenance("neuron_standin"), "rate": args.rate, "rows_ms": ROWS_MS}
        report["balance_by_connections"] = spread_work(folder, bundle, args)
        report["a_core_fails"] = lose_a_core(folder, bundle, args)
        report["start"] = start(folder, args)
        report["placement_of_single_query_rows"] = place(folder, args)
    args.out.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
