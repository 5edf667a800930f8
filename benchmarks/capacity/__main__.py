"""What holds 16,000 queries a second on Inferentia: ``python -m benchmarks.capacity``, some ten minutes of two cores.

Simulates an inf1.6xlarge and an inf2.xlarge with the service's own batching code, in virtual time, so that the machine
need not be quiet: models from BERT-base to the shipped one, rows of 32, 64 and 128 tokens, packed against one padded
query in each. For each it finds the highest rate at which 99 % of the queries are answered within 10 ms, from their
arrival at the host to the written reply, under Poisson load of product queries over 512 connections; the network is not
in it. What a row takes is AWS's figure or extrapolated from it, between a pessimistic and an optimistic edge
(benchmarks/capacity/chips.py). What a request costs the host is measured on this project's own machine
(benchmarks/results/hot_path.json), not on those instances; --request-us and --row-us say something else, and the last
table has hosts half as fast.

Prints the tables, and writes capacity.json and capacity.png (with matplotlib) to --out.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import multiprocessing
import os
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.capacity.chips import EDGES, ENCODERS, INSTANCES, Edge, Encoder, Instance
from benchmarks.capacity.search import (
    CONNECTIONS,
    LENGTHS,
    SLO_S,
    Capacity,
    Host,
    Service,
    capacity,
    dollars_per_million,
    instances_for,
)
from benchmarks.provenance import provenance

RESULTS = Path(__file__).parent.parent / "results"
RATE = 16_000.0
TOKENS = (32, 64, 128)
ROW_US = 100.0  # as `query-intent simulate` has it
SLOWER = 2.0  # the older CPU of these hosts, as an assumption

Capacities = dict[Service, Capacity]


def request_us() -> float:
    """The worker's CPU for a request of the null target at 5,000/s, less that for the row of its own that each has."""
    measured = json.loads((RESULTS / "hot_path.json").read_text())["worker_cpu_us"]["5000"]["ours"]["median"]
    return float(measured) - ROW_US


def services(host: Host) -> list[Service]:
    """All that is simulated; on hosts half as fast, packed rows only."""
    shapes = itertools.product(INSTANCES, ENCODERS, TOKENS, (False, True), EDGES)
    plain = [Service(*shape, host) for shape in shapes]
    return plain + [Service(*shape, host.slower(SLOWER)) for shape in _packed()]


def _packed() -> Iterable[tuple[Instance, Encoder, int, bool, Edge]]:
    return itertools.product(INSTANCES, ENCODERS, TOKENS, (True,), EDGES)


def best(found: Capacities, instance: Instance, encoder: Encoder, packed: bool, edge: Edge, host: Host) -> Service:
    """The row length that holds the most."""
    return max(
        (Service(instance, encoder, tokens, packed, edge, host) for tokens in TOKENS), key=lambda s: found[s].rate
    )


def show_rates(found: Capacities, host: Host) -> None:
    print(f"\nHighest rate of one instance with P99 within {SLO_S * 1e3:g} ms, pessimistic – optimistic:\n")
    shapes = [(packed, tokens) for packed in (False, True) for tokens in TOKENS]
    columns = [f"{'packed' if packed else 'padded'} {tokens}" for packed, tokens in shapes]
    _row(["instance", "model", *columns], head=True)
    for instance, encoder in itertools.product(INSTANCES, ENCODERS):
        cells = []
        for packed, tokens in shapes:
            edges = [found[Service(instance, encoder, tokens, packed, edge, host)].rate for edge in EDGES]
            cells.append(" – ".join(f"{rate:,.0f}" for rate in dict.fromkeys(edges)))
        _row([instance.name, encoder.name, *cells])


def show_cost(found: Capacities, title: str, host: Host, *, packed: bool) -> None:
    print(f"\nFor {RATE:,.0f}/s, {title}: row length, instances, $ per million queries:\n")
    _row(["instance", "model", *EDGES], head=True)
    for instance, encoder in itertools.product(INSTANCES, ENCODERS):
        cells = []
        for edge in EDGES:
            service = best(found, instance, encoder, packed, edge, host)
            count = instances_for(RATE, found[service])
            dollars = f", ${dollars_per_million(RATE, count, instance):.3f}" if count else ""
            cells.append(f"rows of {service.tokens}: {count or 'none'}{dollars}")
        _row([instance.name, encoder.name, *cells])


def _row(cells: list[str], *, head: bool = False) -> None:
    print("| " + " | ".join(cells) + " |" + ("\n|" + " --- |" * len(cells) if head else ""))


def as_json(found: Capacities) -> list[dict[str, Any]]:
    lines = []
    for service, each in found.items():
        count = instances_for(RATE, each)
        lines.append(
            {
                "instance": service.instance.name,
                "model": service.encoder.name,
                "tokens": service.tokens,
                "packed": service.packed,
                "edge": service.edge,
                "request_us": round(service.host.request_s * 1e6, 1),
                "row_ms": round(service.row_s * 1e3, 3),
                "rate": each.rate,
                "workers": each.workers,
                "instances": count,
                "dollars_per_million": round(dollars_per_million(RATE, count, service.instance), 4) if count else None,
                "at_that_rate": asdict(each.held) if each.held else None,
            }
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--request-us", type=float, help="event loop for a request; default: as measured")
    parser.add_argument("--row-us", type=float, default=ROW_US, help="event loop for a row beside (%(default)s)")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="simulations at a time (%(default)s)")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for capacity.json and capacity.png")
    args = parser.parse_args()
    host = Host((request_us() if args.request_us is None else args.request_us) / 1e6, args.row_us / 1e6)
    asked = services(host)
    found: Capacities = {}
    with ProcessPoolExecutor(args.processes, multiprocessing.get_context("spawn")) as pool:
        for service, each in zip(asked, pool.map(capacity, asked), strict=True):
            found[service] = each
            print(f"\r{len(found)} of {len(asked)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    show_rates(found, host)
    show_cost(found, "one padded query a row", host, packed=False)
    show_cost(found, "packed rows", host, packed=True)
    show_cost(found, f"packed rows, hosts {SLOWER:g} times as slow", host.slower(SLOWER), packed=True)
    report = {
        **provenance("capacity"),
        "queries_a_second": RATE,
        "slo_ms": SLO_S * 1e3,
        "connections": CONNECTIONS,
        "query_tokens": asdict(LENGTHS),
        "request_us": round(host.request_s * 1e6, 1),
        "row_us": round(host.row_s * 1e6, 1),
        "instances": [asdict(instance) for instance in INSTANCES],
        "services": as_json(found),
    }
    (args.out / "capacity.json").write_text(json.dumps(report, indent=1) + "\n")
    if importlib.util.find_spec("matplotlib") is not None:
        from benchmarks.capacity.picture import draw

        draw(args.out / "capacity.png", found, host, rate=RATE)


if __name__ == "__main__":
    main()
