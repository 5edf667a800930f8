"""What the cache is worth where traffic repeats: ``python -m benchmarks.cache_gain``, some 15 minutes.

Zipf's law with s = 1 over 10,000 distinct queries, room for 1,000 answers, warmed by 10,000 requests: the highest rate
with P99 within 10 ms, with and without the cache, in interleaved rounds. Writes benchmarks/results/cache_gain.json.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from app.bundle import Bundle
from app.cache import AnswerCache
from app.settings import SHIPPED_BUNDLE
from benchmarks.provenance import provenance
from benchmarks.run import RESULTS
from benchmarks.service import Service

DISTINCT, ANSWERS, WARMING = 10_000, 1_000, 10_000
SLO_MS = 10
WARMING_RATE = 400


def cache_bytes() -> int:
    """Room for ``ANSWERS`` of the shipped bundle's."""
    labels = Bundle(SHIPPED_BUNDLE).manifest.labels
    names = {"intents": [label.name for label in labels], "groups": list(dict.fromkeys(each.group for each in labels))}
    return ANSWERS * AnswerCache(max_bytes=0, ttl_s=1, model="", **names).answer_bytes


def load(url: str, *options: object) -> dict[str, Any]:
    command = [sys.executable, "-m", "app.tools.load", "--url", f"{url}/v1/intent", "--zipf-s", "1"]
    command += ["--distinct", str(DISTINCT), *map(str, options)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.stdout.strip():
        raise RuntimeError(done.stderr)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def highest_rate(seed: int, duration: float, **settings: object) -> dict[str, Any]:
    with Service(**settings) as service:
        warming = ["--rate", WARMING_RATE, "--duration", WARMING / WARMING_RATE, "--warmup", 0, "--seed", seed]
        warm = load(service.traffic, *warming)
        search = ["--find-rate", "--slo-p99-ms", SLO_MS, "--duration", duration, "--seed", seed, "--rate", WARMING_RATE]
        found = load(service.traffic, *search)
        lookups = {labels["result"]: value for labels, value in service.samples("cache_total")}
    hits, misses = lookups.get("hit", 0.0), lookups.get("miss", 0.0)
    return {
        "rate": found["found"]["rate"],
        "hit_share": round(hits / (hits + misses), 3) if hits else 0.0,
        "warming_sources": warm["sources"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--duration", type=float, default=3, help="seconds of each trial of the search")
    parser.add_argument("--out", type=Path, default=RESULTS / "cache_gain.json")
    args = parser.parse_args()
    runs: dict[str, list[dict[str, Any]]] = {"off": [], "on": []}
    for seed in range(args.rounds):
        for name, room in (("off", 0), ("on", cache_bytes())):
            runs[name].append(highest_rate(seed, args.duration, cache_bytes=room))
            print(f"  cache {name}: {runs[name][-1]['rate']}/s", file=sys.stderr)
    rates = {name: statistics.median(each["rate"] or 0 for each in found) for name, found in runs.items()}
    report = {
        **provenance("cache_gain"),
        "highest_rate": rates,
        "gain": round(rates["on"] / rates["off"], 2) if rates["off"] else None,
        "rounds": runs,
    }
    args.out.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
