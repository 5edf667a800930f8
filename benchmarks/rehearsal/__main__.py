"""A rollout, rehearsed: ``python -m benchmarks.rehearsal``, 4 minutes. Needs HAProxy (``apt-get install haproxy``).

Two instances of the service (null target, fallback on) behind HAProxy, which asks the operations ports for readiness
twice a second, and open-loop Poisson load through it: one instance after the other is restarted, three times; one gets
SIGKILL, once where the proxy tries nothing twice and once where it turns to the other instance when a connection is
refused; one is replaced by a model that never becomes ready. Then instances alone: the shipped model is swapped by
SIGHUP at a quarter of what two cores hold, SIGTERM comes with 200 queries queued and 50 connections idle, and the
operations port is asked at three times saturation. Writes benchmarks/results/rehearsal.json; the exit code is 1 when
something of ``reach`` in it is missed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.provenance import provenance
from benchmarks.rehearsal import lifecycle
from benchmarks.rehearsal.instance import Instance
from benchmarks.rehearsal.judging import judge
from benchmarks.rehearsal.proxy import NOTICE_S, Proxy
from benchmarks.rehearsal.rollout import Rollout
from benchmarks.run import RESULTS


def rehearse(args: argparse.Namespace, folder: Path) -> dict[str, Any]:
    settings = {"target": "null", "workers": 1, "replicas": 1, "drain_delay_s": NOTICE_S}
    report: dict[str, Any] = {}
    with Instance("a", **settings) as a, Instance("b", **settings) as b, Proxy((a, b), folder) as proxy:
        for instance in (a, b):
            proxy.wait_for(instance, "UP")
        rollout = Rollout(proxy, (a, b), rate=args.rate)
        _note(report, "restarts", rollout.restart(requests=args.requests))
        _note(report, "killed", rollout.kill(proxy.url))
        _note(report, "killed_behind_a_proxy_that_redispatches", rollout.kill(proxy.redispatching))
        _note(report, "never_ready", rollout.never_ready(folder))
    _note(report, "swap", lifecycle.swap(args.swap_rate, folder))
    _note(report, "sigterm", lifecycle.stop())
    _note(report, "overload", lifecycle.overload(folder))
    return report


def _note(report: dict[str, Any], phase: str, found: dict[str, Any]) -> None:
    report[phase] = found
    print(f"{phase}: {json.dumps(found)}", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, default=500, help="requests a second through the proxy")
    parser.add_argument("--requests", type=int, default=30_000, help="at least so many over the restarts")
    parser.add_argument("--swap-rate", type=float, default=400, help="requests a second during swaps")
    parser.add_argument("--out", type=Path, default=RESULTS / "rehearsal.json")
    args = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        phases = rehearse(args, Path(folder))
    reach = judge(phases)
    seconds = round(time.monotonic() - started)
    report = {**provenance("rehearsal"), "seconds": seconds, "reach": reach, **phases}
    args.out.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(reach, indent=1))
    raise SystemExit(0 if all(reach.values()) else 1)


if __name__ == "__main__":
    main()
