"""Our service and other servers with the same model, side by side: ``python -m benchmarks.peers``, some 20 minutes.

Each round starts every server in turn (ours without cache and fallback, mosec, LitServe), alone on the machine, and
sends it the same open-loop Poisson load of shop queries at rising rates, until fewer than half of the answers come
within 100 ms; then the bare engine in a loop. Before the first round each peer's settings are tried and the best are
kept, and its answers are compared with ours. All run the same int8 graph: ours in packed rows, theirs in padded
batches.

Writes benchmarks/results/peers.json and peers.png: latencies, errors, the generator's CPU and void runs at each rate,
medians over the rounds; the highest rate with P99 within 10 and 25 ms; the peak of goodput as a share of what the bare
engine computes. The peers' environments are made on the first run, in .peers/. Meant for a quiet machine.

    python -m benchmarks.peers                                              # the measurement
    python -m benchmarks.peers --rounds 1 --duration 1 --rates 20 50 --skip-tuning --out try.json # a look
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from app.bundle import Bundle
from app.settings import SHIPPED_BUNDLE
from app.tools.load.queries import OWN_QUERIES
from benchmarks.peers import dense
from benchmarks.peers.figures import GOOD_WITHIN_MS, Run, compare, is_hopeless, peak_goodput, summarise
from benchmarks.peers.picture import draw
from benchmarks.peers.servers import MODEL, OURS, PEERS, TUNINGS, Running, intents, ours, peer
from benchmarks.peers.settings import Tuning
from benchmarks.peers.tuning import choose
from benchmarks.provenance import provenance
from benchmarks.queries import write_queries
from benchmarks.run import RESULTS, load

COMPARED = 200
Server = Callable[[], AbstractContextManager[Running]]
Runs = dict[str, defaultdict[float, list[Run]]]


def main() -> None:
    args = _parse()
    # A server that is running has a session of its own and wouldn't end with us.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    dense.build(Bundle(args.bundle), MODEL)
    with tempfile.TemporaryDirectory() as folder:
        queries = Path(folder) / "queries.txt"
        if not write_queries(queries):
            sys.exit("set QUERY_INTENT_DATA: real queries differ in length, and length is what is measured")
        tunings, tried = _tune(args, queries)
        servers: dict[str, Server] = {OURS: lambda: ours(args.bundle)}
        servers |= {name: lambda name=name: peer(name, tunings[name]) for name in args.peers}
        agreement = _agreement(servers, [*OWN_QUERIES, *queries.read_text(encoding="utf-8").splitlines()][:COMPARED])
        runs, start_s, bare = _measure(args, servers, queries)
    figures = {
        name: {rate: summarise(each) for rate, each in sorted(by_rate.items())} for name, by_rate in runs.items()
    }
    bare_rate = statistics.median(each["queries_per_s"] for each in bare)
    report = {
        **provenance("peers"),
        "rounds": args.rounds,
        "duration_s": args.duration,
        "bundle": Bundle(args.bundle).name,
        "tunings": tried,
        "agreement_with_ours": agreement,
        "highest_rates": compare(figures, OURS),
        "bare_engine": {"queries_per_s": bare_rate, "rounds": bare},
        "peak_goodput": {
            name: {"per_s": (peak := peak_goodput(rates)), "of_bare_engine": round(peak / bare_rate, 3)}
            for name, rates in figures.items()
        },
        "servers": {
            name: {
                "start_s": round(statistics.median(start_s[name]), 2),
                "rates": {f"{r:g}": f for r, f in each.items()},
            }
            for name, each in figures.items()
        },
    }
    args.out.parent.mkdir(exist_ok=True)
    args.out.write_text(json.dumps(report, indent=1) + "\n")
    draw(args.out.with_suffix(".png"), figures)
    _show(report)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    rates = [50, 100, 200, 300, 450, 600, 800, 1100, 1500, 2000]
    parser.add_argument("--rates", type=float, nargs="+", default=rates, help=f"requests a second; default: {rates}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--duration", type=float, default=4, help="seconds of each run, after 2 of warm-up")
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=list(PEERS), help="default: all")
    parser.add_argument("--tuning-rates", type=float, nargs="+", default=[50, 300], help="at which settings are tried")
    parser.add_argument("--skip-tuning", action="store_true", help=f"run every peer with: {TUNINGS[0]}")
    parser.add_argument("--bundle", type=Path, default=SHIPPED_BUNDLE)
    parser.add_argument("--out", type=Path, default=RESULTS / "peers.json", help="the picture lies beside it, as .png")
    return parser.parse_args()


def _tune(args: argparse.Namespace, queries: Path) -> tuple[dict[str, Tuning], dict[str, Any]]:
    if args.skip_tuning:
        return dict.fromkeys(args.peers, TUNINGS[0]), {name: {"taken": str(TUNINGS[0])} for name in args.peers}
    found = {name: choose(name, args.tuning_rates, queries, duration=args.duration) for name in args.peers}
    return {name: tuning for name, (tuning, _) in found.items()}, {name: tried for name, (_, tried) in found.items()}


def _agreement(servers: dict[str, Server], queries: list[str]) -> dict[str, Any]:
    """How many queries each peer gives our intent, and which it doesn't."""
    answers: dict[str, list[str]] = {}
    for name, start in servers.items():
        with start() as running:
            answers[name] = intents(running.url, queries)
    expected = answers.pop(OURS)
    return {
        name: {
            "queries": len(queries),
            "same_intent": sum(theirs == our for theirs, our in zip(given, expected, strict=True)),
            "others": [
                {"query": query, "ours": our, "theirs": theirs}
                for query, our, theirs in zip(queries, expected, given, strict=True)
                if our != theirs
            ],
        }
        for name, given in answers.items()
    }


def _measure(
    args: argparse.Namespace, servers: dict[str, Server], queries: Path
) -> tuple[Runs, dict[str, list[float]], list[dict[str, Any]]]:
    """The runs of each server by rate, its starts in seconds, and what the bare engine did in each round."""
    runs: Runs = {name: defaultdict(list) for name in servers}
    start_s: defaultdict[str, list[float]] = defaultdict(list)
    bare: list[dict[str, Any]] = []
    # The first round finds how far each goes, so that every rate has as many rounds as the others.
    rates = {name: sorted(args.rates) for name in servers}
    for number in range(args.rounds):
        for name, start in servers.items():
            with start() as running:
                start_s[name].append(running.start_s)
                for rate in rates[name]:
                    result = load(running.url, rate, args.duration, queries, seed=number, slo_p99_ms=GOOD_WITHIN_MS)
                    runs[name][rate].append(result)
                    void = "  VOID" if result["lag"]["void"] else ""
                    p99 = result["latency_ms"]["p99"]
                    print(f"  round {number + 1} {name:<12} {rate:>6g}/s  P99 {p99} ms{void}", file=sys.stderr)
                    if number == 0 and is_hopeless(result):
                        break
                rates[name] = sorted(runs[name])
        bare.append(_bare_engine(args.bundle))
    return runs, start_s, bare


def _bare_engine(bundle: Path) -> dict[str, Any]:
    """In a process of its own, whose threads and memory are gone before the next server starts."""
    command = [sys.executable, "-m", "benchmarks.bare_engine", "--bundle", str(bundle)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _show(report: dict[str, Any]) -> None:
    names = list(report["servers"])
    print("| requests/s | " + " | ".join(f"{name} P99 ms" for name in names) + " |\n|" + " --- |" * (len(names) + 1))
    for rate in report["servers"][OURS]["rates"]:
        found = [report["servers"][name]["rates"].get(rate, {"p99_ms": None})["p99_ms"] for name in names]
        print(f"| {rate} | " + " | ".join("–" if each is None else f"{each:.1f}" for each in found) + " |")
    for objective, found in report["highest_rates"].items():
        rates = ", ".join(f"{name} {each['held'] or 'none'}" for name, each in found["highest_rate"].items())
        times = f"{found['times_best_peer']} x the best peer, at least {found['times_best_peer_at_least']}"
        print(f"{objective}: {rates} ({times})")
    ours_peak = report["peak_goodput"][OURS]
    print(f"peak goodput: {ours_peak['per_s']}/s, {ours_peak['of_bare_engine']:.0%} of the bare engine")


if __name__ == "__main__":
    main()
