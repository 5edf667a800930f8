"""What is left past saturation: ``python -m benchmarks.overload``, 5 minutes and four times ``--minutes``.

Without fallback and cache, for the shipped bundle and for the null target with rows of 3 ms: the most answers a second
in time (200 within ``TIMEOUT_MS``) over rising rates, then what three times that rate leaves of them, in interleaved
rounds. Then the shipped bundle with its fallback at 1.5 to 5 times: every single query should get a 200 within 10 ms
of the server's own time, by the service's metrics. Medians; writes benchmarks/results/overload.json.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.provenance import provenance
from benchmarks.queries import write_queries
from benchmarks.run import RESULTS, load
from benchmarks.service import Service

TIMES = 3.0
TIMES_WITH_FALLBACK = (1.5, 2.0, 3.0, 5.0)
# As many as shoppers have: few connections would keep the excess from reaching the service at all.
CONNECTIONS = 1024
KINDS: dict[str, dict[str, object]] = {
    "shipped bundle": {},
    "null target, rows of 3 ms": {"target": "null", "null_ms": 3},
}


def answered(result: dict[str, Any]) -> float:
    """Answers a second in time: a 200 comes within the service's TIMEOUT_MS or not at all."""
    return float(result["statuses"].get("200", 0)) / result["duration_s"]


def send(
    service: Service, rate: float, seconds: float, queries: Path, seed: int, *, warmup: float = 1
) -> dict[str, Any]:
    return load(service.traffic, rate, seconds, queries, seed, warmup=warmup, connections=CONNECTIONS)


def saturate(args: argparse.Namespace, queries: Path) -> dict[str, Any]:
    """By kind: the peak of answers, and what three times the rate of the peak leaves of it."""
    found: dict[str, Any] = {}
    peaks: dict[str, list[float]] = {kind: [] for kind in KINDS}
    beyond: dict[str, list[dict[str, Any]]] = {kind: [] for kind in KINDS}
    for number in range(args.rounds):
        for kind, settings in KINDS.items():
            with Service(**settings) as service:
                peak = max(answered(send(service, rate, args.duration, queries, number)) for rate in args.rates)
                peaks[kind].append(peak)
                beyond[kind].append(send(service, TIMES * peak, args.duration, queries, number))
            print(f"  {kind}, round {number + 1}: {peak:.0f}/s at its peak, {answered(beyond[kind][-1]):.0f}/s beyond")
    for kind in KINDS:
        runs = beyond[kind]
        shares = [answered(run) / peak for run, peak in zip(runs, peaks[kind], strict=True)]
        statuses = sum((Counter(run["statuses"]) for run in runs), Counter())
        found[kind] = {
            "peak_per_s": round(statistics.median(peaks[kind]), 1),
            "share_of_peak_at_3_times": round(statistics.median(shares), 3),
            "share_of_each_round": [round(share, 3) for share in shares],
            "answered_p99_ms": _median(runs, lambda run: run["latency_ms_by_status"]["200"]["p99"]),
            "refused_p50_ms": _median(runs, lambda run: run["latency_ms_by_status"]["429"]["p50"]),
            "refused_p99_ms": _median(runs, lambda run: run["latency_ms_by_status"]["429"]["p99"]),
            "statuses": dict(statuses),
            "void_rounds": sum(run["lag"]["void"] for run in runs),
        }
    return found


def fall_back(rate: float, seconds: float, queries: Path) -> dict[str, Any]:
    """What becomes of single queries at ``rate`` with the fallback on; the server's own count and time."""
    with Service(fallback="on") as service:
        before = _counts(service)
        result = send(service, rate, seconds, queries, seed=0, warmup=0)
        after = _counts(service)
        pss_mb = service.pss_mb()
    counts = {name: after[name] - before.get(name, 0) for name in after}
    within = counts.pop("within")
    total = sum(counts.values())
    return {
        "rate": round(rate),
        "seconds": seconds,
        "requests": int(total),
        "by_status_and_source": {name: int(count) for name, count in counts.items() if count},
        "share_200_within_10_ms": within / total,
        "client_latency_ms": result["latency_ms"],
        "errors": result["errors"],
        "sent_late": result["lag"],
        "pss_mb": round(pss_mb),
    }


def _counts(service: Service) -> dict[str, float]:
    counts = {
        f"{labels['status']} {labels['source']}": value
        for labels, value in service.samples("requests_total")
        if labels["route"] == "/v1/intent"
    }
    return counts | {"within": sum(value for _, value in service.samples("requests_within_slo_total"))}


def _median(runs: list[dict[str, Any]], read: Any) -> float | None:
    values = [read(run) for run in runs if "429" in run["latency_ms_by_status"]]
    return round(statistics.median(values), 2) if values else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--rates", type=float, nargs="+", default=[1200, 1600, 2000, 2600, 3200], help="to find the peak"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--duration", type=float, default=3, help="seconds of each run")
    parser.add_argument(
        "--minutes", type=float, default=10, help="of each of 1.5 to 5 times saturation with the fallback on"
    )
    parser.add_argument("--out", type=Path, default=RESULTS / "overload.json")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        queries = Path(folder) / "queries.txt"
        if not write_queries(queries):
            raise SystemExit("benchmarks.overload sends people's own queries: let QUERY_INTENT_DATA name the raw data")
        report: dict[str, Any] = {**provenance("overload")}
        report["without_fallback"] = saturate(args, queries)
        peak = report["without_fallback"]["shipped bundle"]["peak_per_s"]
        report["with_fallback"] = {
            f"{times:g} times": fall_back(times * peak, args.minutes * 60, queries) for times in TIMES_WITH_FALLBACK
        }
    args.out.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
