"""What a smaller model buys in the service: ``python -m benchmarks.sizes 6=BUNDLE 3=OTHER_BUNDLE …``.

Every round starts each bundle's service once and sends it the same open-loop Poisson load at each rate, so that a noisy
minute falls on every size. Prints a table of medians and writes it to benchmarks/results/sizes.json; two sizes at
four rates take about five minutes. How good each is says ``query-intent evaluate``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from benchmarks.provenance import provenance
from benchmarks.queries import write_queries
from benchmarks.run import RESULTS, load_service, one_after_another, summarise
from benchmarks.service import Service


def named(text: str) -> tuple[str, Path]:
    name, _, folder = text.partition("=")
    if not folder or not (Path(folder) / "bundle.json").is_file():
        raise argparse.ArgumentTypeError(f"{text!r} is no NAME=BUNDLE")
    return name, Path(folder)


def run_round(bundle: Path, args: argparse.Namespace, queries: Path, seed: int) -> dict[str, Any]:
    """One start of the service: the figures of each rate, and of requests one after another."""
    with Service(bundle=bundle) as service:
        found: dict[str, Any] = {"start_s": service.start_s, "rates": {}}
        found["one_after_another_ms"] = one_after_another(service.traffic, queries.read_text().splitlines())
        for rate in args.rates:
            found["rates"][f"{rate:g}"] = load_service(service, rate, args.duration, queries, seed=seed)
        found["pss_mb"] = service.pss_mb()
    return found


def medians(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    def median(read: Any) -> float:
        return round(statistics.median(read(each) for each in rounds), 2)

    return {
        "start_s": median(lambda r: r["start_s"]),
        "pss_mb": median(lambda r: r["pss_mb"]),
        "one_after_another_ms": {p: median(lambda r, p=p: r["one_after_another_ms"][p]) for p in ("p50", "p99")},
        "rates": {rate: summarise([each["rates"][rate] for each in rounds]) for rate in rounds[0]["rates"]},
    }


def show(sizes: dict[str, dict[str, Any]], rates: list[str]) -> None:
    columns = ["bundle", *(f"P99 ms at {rate}/s" for rate in rates)]
    columns += ["alone P50 / P99 ms", "MB", "ready s", "runs void", "not 200"]
    print("| " + " | ".join(columns) + " |\n|" + " --- |" * len(columns))
    for name, each in sizes.items():
        alone = each["one_after_another_ms"]
        cells = [name, *(f"{each['rates'][rate]['p99_ms']}" for rate in rates)]
        cells += [f"{alone['p50']} / {alone['p99']}", f"{each['pss_mb']:.0f}", f"{each['start_s']}"]
        cells += [str(sum(each["rates"][rate][count] for rate in rates)) for count in ("void_rounds", "not_200")]
        print("| " + " | ".join(cells) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundles", type=named, nargs="+", metavar="NAME=BUNDLE")
    parser.add_argument("--rates", type=float, nargs="+", default=[100, 250, 400, 600])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--duration", type=float, default=4, help="seconds of each run")
    parser.add_argument("--out", type=Path, default=RESULTS / "sizes.json")
    args = parser.parse_args()
    rounds: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        queries = Path(folder) / "queries.txt"
        if not write_queries(queries):
            parser.error("set QUERY_INTENT_DATA: real queries differ in length, and length is what is measured")
        for seed in range(args.rounds):
            for name, bundle in args.bundles:
                rounds[name].append(run_round(bundle, args, queries, seed))
                print(f"round {seed + 1}/{args.rounds}: {name}", file=sys.stderr)
    sizes = {name: medians(each) for name, each in rounds.items()}
    show(sizes, [f"{rate:g}" for rate in args.rates])
    report = {**provenance("sizes"), "sizes": sizes}
    args.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
