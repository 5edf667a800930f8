"""Whether ``query-intent simulate`` foretells this machine: ``python -m benchmarks.simulator_agreement``, 4 minutes.

P99 of the shipped bundle under open-loop Poisson load at three rates, up to 70 % of what full rows hold, against the
simulation of the same: rows timed here, the length of the same queries, and what a request costs beside its row, which
is the worker's CPU on the null target plus the load tester's own, since both take it from the model's cores.
Interleaved rounds, medians; what the service itself says (`total`) stands beside. Writes benchmarks/results/
simulator_agreement.json and ends with 1 where a rate is off by more than 25 % and 2 ms.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.provenance import provenance
from benchmarks.queries import write_queries
from benchmarks.run import RESULTS, load_service
from benchmarks.service import Service

RELATIVE, ABSOLUTE_MS = 0.25, 2.0
ROW_US = 100.0  # of the event loop for a row, as `simulate` has it by default; the rest of a null row is its request's


def simulate(rates: list[float], request_us: float, queries: Path, seed: int) -> dict[float, dict[str, Any]]:
    """By rate, what the simulation says."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "simulated.json"
        command = [sys.executable, "-m", "app.cli", "simulate", "--shared-cores", "--queries", str(queries)]
        command += ["--rate", ",".join(map(str, rates)), "--request-us", f"{request_us:.0f}", "--row-us", f"{ROW_US:g}"]
        command += ["--requests", "20000", "--seed", str(seed), "--out", str(out)]
        subprocess.run(command, check=True, capture_output=True)
        runs = json.loads(out.read_text())["results"]
    return {run["rate"]: run for run in runs}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", type=float, nargs="+", default=[400, 700, 1000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--duration", type=float, default=4, help="seconds of each run")
    parser.add_argument("--out", type=Path, default=RESULTS / "simulator_agreement.json")
    args = parser.parse_args()
    measured: dict[float, list[float]] = {rate: [] for rate in args.rates}
    simulated: dict[float, list[float]] = {rate: [] for rate in args.rates}
    in_server: dict[float, list[float]] = {rate: [] for rate in args.rates}
    loads: dict[float, float] = {}
    request_us: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        queries = Path(folder) / "queries.txt"
        if not write_queries(queries):
            raise SystemExit("benchmarks.simulator_agreement sends people's own queries: set QUERY_INTENT_DATA")
        for number in range(args.rounds):
            with Service(target="null") as service:
                null = load_service(service, statistics.median(args.rates), args.duration, queries, number)
            with Service() as service:
                for rate in args.rates:
                    result = load_service(service, rate, args.duration, queries, number)
                    measured[rate].append(result["latency_ms"]["p99"])
                    in_server[rate].append(result["server_timing_ms"]["total"]["p99"])
            request_us.append(null["worker_cpu_us"] - ROW_US + null["generator_cpu_us_per_request"])
            for rate, run in simulate(args.rates, request_us[-1], queries, number).items():
                simulated[rate].append(run["p99_ms"])
                loads[rate] = run["load"]
            print(f"  round {number + 1} of {args.rounds}", file=sys.stderr)
    rows = {}
    for rate in args.rates:
        real, virtual = statistics.median(measured[rate]), statistics.median(simulated[rate])
        is_near = abs(virtual - real) <= max(RELATIVE * real, ABSOLUTE_MS)
        rows[f"{rate:g}"] = {
            "load": loads[rate],
            "measured_p99_ms": round(real, 2),
            "simulated_p99_ms": round(virtual, 2),
            "server_total_p99_ms": round(statistics.median(in_server[rate]), 2),
            "agrees": is_near,
            "measured_of_each_round": [round(each, 2) for each in measured[rate]],
            "simulated_of_each_round": [round(each, 2) for each in simulated[rate]],
        }
    report = {
        **provenance("simulator_agreement"),
        "rule": f"within {RELATIVE:.0%} or {ABSOLUTE_MS:g} ms of the measured P99",
        "request_us": round(statistics.median(request_us)),
        "rates": rows,
    }
    args.out.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report, indent=1))
    sys.exit(not all(row["agrees"] for row in rows.values()))


if __name__ == "__main__":
    main()
