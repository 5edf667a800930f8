"""Loads replicas one after another and says of each what it found: a line of JSON as soon as it is known.

    python -m app.tools.doctor.probe '{"bundle": …, "target": "cpu", "replicas": 2, "span": 1}'

A process of its own: cores are free again only when it has ended, and an engine that hangs or crashes takes nothing
else with it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from app.bundle import Bundle
from app.engine import Engine


def main(orders: dict[str, Any]) -> None:
    bundle = Bundle(Path(orders["bundle"]))
    engine = Engine(bundle, orders["target"], replicas=orders["replicas"], slo_s=1.0, queue_tokens=1 << 20)
    for replica in engine.make_replicas():
        started = time.monotonic()
        replica.start()
        found: dict[str, Any] = {"replica": replica.index}
        try:
            seconds = replica.warm.result()
        except Exception as error:  # of the engine, the device or the canary: what this is here to find
            found["error"] = str(error) or type(error).__name__
        else:
            found["rows_ms"] = {str(bucket): round(each * 1e3, 3) for bucket, each in seconds.items()}
        found["load_s"] = round(time.monotonic() - started, 2)
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
    sys.stdout.flush()
    os._exit(0)  # the replicas wait for rows that nobody sends
