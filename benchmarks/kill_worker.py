"""What clients see when a worker is killed under load: ``python -m benchmarks.kill_worker``, half a minute.

Open-loop load at 250/s on the shipped bundle; after 4 s the worker gets SIGKILL. Prints what the clients got, how long
the service said that it was not ready, and how long until the first answer of the new worker. One worker is the worst
case: its clients have nowhere else to go until the new one has loaded.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from benchmarks.service import Service

RESULTS = Path(__file__).parent / "results"
KILL_AFTER_S = 4.0


def status(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=2) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        return error.code


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--rate", type=float, default=250)
    parser.add_argument("--duration", type=float, default=16)
    args = parser.parse_args()
    with Service(workers=args.workers, replicas=max(1, (os.cpu_count() or 1) // args.workers)) as service:
        command = [sys.executable, "-m", "app.tools.load", "--url", f"{service.traffic}/v1/intent"]
        command += ["--rate", str(args.rate), "--duration", str(args.duration), "--warmup", "0"]
        load = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        time.sleep(KILL_AFTER_S)
        victim = service.processes()[1]
        killed = time.perf_counter()
        os.kill(victim, signal.SIGKILL)
        unready_from = unready_to = None
        while load.poll() is None:
            seconds = time.perf_counter() - killed
            if status(f"{service.operations}/readyz") != 200:
                unready_from = seconds if unready_from is None else unready_from
                unready_to = None
            elif unready_from is not None and unready_to is None:
                unready_to = seconds
            time.sleep(0.02)
        assert load.stdout is not None
        result = json.loads(load.stdout.read().splitlines()[-1])
    report = {
        "workers": args.workers,
        "rate": args.rate,
        "sent": result["sent"],
        "statuses": result["statuses"],
        "errors": result["errors"],
        "latency_ms": result["latency_ms"],
        "not_ready_from_s": unready_from and round(unready_from, 2),
        "ready_again_s": unready_to and round(unready_to, 2),
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"kill_worker_{args.workers}.json").write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report))


if __name__ == "__main__":
    main()
