"""The model on every core: does each give the golden answers, and how long does a row take it?"""

from __future__ import annotations

import json
import select
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from app.tools.doctor.check import Check, failed, ok, warning

REPLICA_TIMEOUT_S = 300.0
SLOW = 1.5  # times the median of the others' rows, at which a core is worth a look
LAST_LINES = 5


@dataclass(frozen=True, slots=True)
class Probed:
    """``rows_ms`` by core and bucket of those that are well, ``errors`` by core of the others, ``words`` on stderr."""

    rows_ms: Mapping[str, Mapping[int, float]]
    errors: Mapping[str, str]
    load_s: Mapping[str, float]
    words: str = ""


def probe(
    bundle: Path, target: str, names: Sequence[str], environ: Mapping[str, str], *, timeout_s: float = REPLICA_TIMEOUT_S
) -> Probed:
    """Load a replica for each of ``names`` (cores, as a person counts them) in a process with this environment.

    ``timeout_s`` is for each of them.
    """
    orders = json.dumps({"bundle": str(bundle), "target": target, "replicas": len(names)})
    command = [sys.executable, "-m", "app.tools.doctor.probe", orders]
    rows_ms: dict[str, dict[int, float]] = {}
    errors: dict[str, str] = {}
    load_s: dict[str, float] = {}
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as stderr:
        with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=stderr, bufsize=0) as process:
            assert process.stdout is not None
            for name in names:
                line = _next_line(process.stdout, timeout_s)
                if line is None:
                    errors[name] = f"not ready after {timeout_s:g} s"
                    process.kill()
                    break
                if not line:
                    process.wait()
                    errors[name] = f"the process ended, exit code {process.returncode}"
                    break
                found = json.loads(line)
                load_s[name] = found["load_s"]
                if "error" in found:
                    errors[name] = found["error"]
                else:
                    rows_ms[name] = {int(bucket): each for bucket, each in found["rows_ms"].items()}
        stderr.seek(0)
        words = stderr.read()
    return Probed(rows_ms, errors, load_s, words)


def canary(found: Probed, names: Sequence[str]) -> Check:
    if found.errors:
        untried = [name for name in names if name not in found.rows_ms and name not in found.errors]
        lines = [f"{core}: {error}" for core, error in found.errors.items()]
        if untried:
            lines.append(f"not tried: {', '.join(untried)}")
        lines += found.words.splitlines()[-LAST_LINES:] if not found.rows_ms else []
        return failed(
            "canary",
            f"{len(found.rows_ms)} of {len(names)} replicas give the golden answers\n" + "\n".join(lines),
            "where all fail, compile again with what is installed here; a core that fails alone is broken: replace the "
            "host",
            errors=dict(found.errors),
            stderr=found.words,
        )
    seconds = sum(found.load_s.values())
    return ok(
        "canary",
        f"{len(names)} of {len(names)} replicas give the golden answers in every bucket; {seconds:.1f} s, one by one",
        load_s=dict(found.load_s),
    )


def latency(found: Probed, slo_ms: float) -> Check:
    """The table, and two judgements: no core far slower than the others, and a lone query in time on each."""
    data: dict[str, Any] = {"rows_ms": {core: dict(rows) for core, rows in found.rows_ms.items()}}
    table = _table(found.rows_ms)
    buckets = sorted(next(iter(found.rows_ms.values())))
    shortest = {core: rows[buckets[0]] for core, rows in found.rows_ms.items()}
    slowest = max(shortest, key=lambda core: shortest[core])
    if shortest[slowest] > slo_ms:
        return failed(
            "latency",
            f"the shortest row takes {shortest[slowest]:.2f} ms on {slowest}, the objective is {slo_ms:g} ms\n{table}",
            "compile a smaller model or shorter rows, or take a faster kind of instance",
            **data,
        )
    usual = {bucket: statistics.median(rows[bucket] for rows in found.rows_ms.values()) for bucket in buckets}
    slow = [
        core
        for core, rows in found.rows_ms.items()
        if statistics.median(rows[bucket] / usual[bucket] for bucket in buckets) > SLOW
    ]
    if slow:
        return warning(
            "latency",
            f"{', '.join(slow)} over {SLOW:g} times as slow as the others\n{table}",
            "run it again with nothing else on the machine; a core that stays slow is a reason to replace the host",
            **data,
        )
    return ok("latency", f"ms a full row takes, alone on the machine\n{table}", **data)


def tokens_per_second(found: Probed) -> float:
    """Of all cores in their most efficient rows."""
    return sum(max(bucket / ms * 1e3 for bucket, ms in rows.items() if ms) for rows in found.rows_ms.values())


def _table(rows_ms: Mapping[str, Mapping[int, float]]) -> str:
    """A line a core, a column a bucket."""
    buckets = sorted(next(iter(rows_ms.values())))
    width = max(len("tokens"), *map(len, rows_ms))
    lines = [f"{'tokens':<{width}}" + "".join(f"{bucket:>9}" for bucket in buckets)]
    lines += [
        f"{core:<{width}}" + "".join(f"{rows[bucket]:>9.2f}" for bucket in buckets) for core, rows in rows_ms.items()
    ]
    return "\n".join(lines)


def _next_line(stream: IO[bytes], timeout_s: float) -> str | None:
    """Empty at the end of the stream, None when nothing came in time. What the engine prints itself is passed over.

    The stream is unbuffered, or lines that were read already would be waited for.
    """
    deadline = time.monotonic() + timeout_s
    while select.select([stream], [], [], max(0.0, deadline - time.monotonic()))[0]:
        line = stream.readline().decode("utf-8", "replace")
        if not line or line.startswith('{"replica"'):
            return line
    return None
