"""Whether ``query-intent load`` agrees with wrk and perf_analyzer: ``python -m benchmarks.load_agreement``, 5 minutes.

Other load generators measure something else, a closed loop or the time since a late send, but in two places it is the
same, and there the numbers have to be within 5 %:

- *paced*, well below saturation: percentiles of the time from a request's write to its reply. perf_analyzer sends
  Poisson arrivals itself. wrk knows no rates, so a script makes each of its many connections think for exponential
  times, and our run gets the rate that came of it.
- *saturated*, wrk only: requests a second through the same few connections, each of them always busy.

perf_analyzer comes in the wheels of tritonclient (up to 2.50 for glibc 2.36), as data/bin/perf_analyzer; it needs
libb64 and libcudart.

Both on the null target, whose rows take NULL_MS: a server that idles meanwhile leaves the generators their CPU. Tools
that aren't on the PATH are left out. Interleaved rounds, medians; writes benchmarks/results/load_agreement.json and
ends with 1 where a median differs by more. Meant for a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from app.tools.load.queries import make_up
from benchmarks.provenance import provenance
from benchmarks.service import Service

RESULTS = Path(__file__).parent / "results"
LIMIT = 0.05
WARMUP_S = 1
NULL_MS = 10
MANY, FEW = 64, 16  # connections of a paced and of a saturated run
PERCENTILES = {"p50": 50.0, "p90": 90.0, "p99": 99.0}
# The server has to answer late rather than to refuse: refusals would be counted by some and not by others.
PATIENT_MS = 10_000
BODIES = [json.dumps({"query": query, "timeout_ms": PATIENT_MS}) for query in make_up(500)]

Figures = dict[str, float]

WRK_SCRIPT = """
local bodies = { %(bodies)s }
local next_body = 0
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
math.randomseed(%(seed)d)

function request()
  next_body = next_body %% #bodies + 1
  return wrk.format(nil, nil, nil, bodies[next_body])
end

function done(summary, latency)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format('{"rate": %%f, "failed": %%d, "p50": %%f, "p90": %%f, "p99": %%f}\\n',
    summary.requests / summary.duration * 1e6, failed,
    latency:percentile(50) / 1e3, latency:percentile(90) / 1e3, latency:percentile(99) / 1e3))
end
"""
# In whole milliseconds, as wrk's timers are.
WRK_PACE = """
function delay()
  return math.floor(-math.log(1 - math.random()) * %(think_ms)f + 0.5)
end
"""


def ours(url: str, rate: float, duration_s: float, connections: int, seed: int, *, warmup_s: float) -> Figures:
    command = [sys.executable, "-m", "app.tools.load", "--url", url, "--rate", str(rate), "--seed", str(seed)]
    command += ["--duration", str(duration_s), "--warmup", str(warmup_s), "--connections", str(connections)]
    command += ["--distinct", str(len(BODIES)), "--timeout-ms", str(PATIENT_MS)]
    command += ["--body", json.dumps({"query": "{query}", "timeout_ms": PATIENT_MS})]
    result = json.loads(_output(command).splitlines()[-1])
    failed = result["scheduled"] - result["statuses"].get("200", 0)
    from_send = {name: result["latency_from_send_ms"][name] for name in PERCENTILES}
    return {"rate": result["achieved_rate"], "failed": failed, "void": result["lag"]["void"], **from_send}


def wrk(url: str, duration_s: float, connections: int, seed: int, rate: float | None = None) -> Figures:
    """At ``rate``, or as fast as it goes. Its own correction of percentiles touches nothing that paced runs have."""
    script = WRK_SCRIPT % {"bodies": ", ".join(f"[[{body}]]" for body in BODIES), "seed": seed}
    if rate:
        script += WRK_PACE % {"think_ms": connections / rate * 1e3}
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        file.write(script)
        file.flush()
        options = ["-t", "1", "-c", str(connections), "-d", f"{duration_s:.0f}s", "-s", file.name]
        figures: Figures = json.loads(_output(["wrk", *options, url]).splitlines()[-1])
    return figures


def perf_analyzer(url: str, rate: float, duration_s: float) -> Figures:
    """Its client for OpenAI's protocol posts any JSON."""
    parts = urllib.parse.urlsplit(url)
    with tempfile.TemporaryDirectory() as folder:
        inputs, export = Path(folder) / "inputs.json", Path(folder) / "export.json"
        inputs.write_text(json.dumps({"data": [{"payload": [json.loads(body)]} for body in BODIES]}))
        command = ["perf_analyzer", "-m", "query-intent", "--service-kind=openai", "-u", parts.netloc, "--async"]
        command += [f"--endpoint={parts.path.strip('/')}", f"--input-data={inputs}"]
        command += [f"--request-rate-range={rate}", "--request-distribution=poisson"]
        _output([*command, f"--request-count={rate * WARMUP_S:.0f}"])  # only the newest versions know a warm-up
        _output([*command, f"--request-count={rate * duration_s:.0f}", f"--profile-export-file={export}"])
        return read_export(json.loads(export.read_text()))


def read_export(export: dict[str, Any]) -> Figures:
    """Figures out of perf_analyzer's profile export, whose times are in ns."""
    requests = export["experiments"][0]["requests"]
    sent_ns = sorted(request["timestamp"] for request in requests)
    answered = [request for request in requests if request["response_timestamps"]]
    latencies_ms = sorted((request["response_timestamps"][-1] - request["timestamp"]) / 1e6 for request in answered)
    cuts = statistics.quantiles(latencies_ms, n=100, method="inclusive")
    return {
        "rate": (len(requests) - 1) / (sent_ns[-1] - sent_ns[0]) * 1e9,
        "failed": len(requests) - len(answered),
        **{name: cuts[round(at) - 1] for name, at in PERCENTILES.items()},
    }


def compare(rounds: list[tuple[Figures, Figures]], names: list[str]) -> dict[str, Any]:
    """Medians of both, theirs first, and how far ours is from theirs; void rounds left out if they are the fewer."""
    valid = [(theirs, our) for theirs, our in rounds if not our["void"]]
    is_judged = 2 * len(valid) > len(rounds)
    found: dict[str, Any] = {"failed": [[theirs["failed"], our["failed"]] for theirs, our in rounds]}
    found["void_rounds"] = len(rounds) - len(valid)
    for name in names:
        pairs = valid if is_judged else rounds
        theirs, our = (statistics.median(pair[side][name] for pair in pairs) for side in (0, 1))
        found[name] = {"theirs": round(theirs, 3), "ours": round(our, 3), "difference": round(our / theirs - 1, 4)}
    found["agrees"] = is_judged and all(abs(found[name]["difference"]) <= LIMIT for name in names)
    return found


def measure(url: str, args: argparse.Namespace) -> dict[str, Any]:
    paced_by: dict[str, Callable[[int], Figures]] = {
        "wrk": lambda seed: wrk(url, args.duration, MANY, seed, args.rate),
        "perf_analyzer": lambda seed: perf_analyzer(url, args.rate, args.duration),
    }
    found: dict[str, Any] = {}
    for tool, run in paced_by.items():
        if not shutil.which(tool):
            found[tool] = "not on the PATH"
            continue
        rounds = []
        for seed in range(args.rounds):
            theirs = run(seed)
            rounds.append((theirs, ours(url, theirs["rate"], args.duration, MANY, seed, warmup_s=WARMUP_S)))
        found[tool] = {"paced": compare(rounds, list(PERCENTILES))}
        if tool == "wrk":
            rounds = []
            for seed in range(args.rounds):
                theirs = wrk(url, args.duration, FEW, seed)
                # More than fits through: what waits is sent as soon as a connection is free, so none ever idles. No
                # warm-up, whose own backlog would go first.
                rate = 1.3 * theirs["rate"]
                rounds.append((theirs, ours(url, rate, args.duration, FEW, seed, warmup_s=0)))
            found[tool]["saturated"] = compare(rounds, ["rate"])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, default=300, help="of the paced runs")
    parser.add_argument("--duration", type=float, default=10, help="seconds of each run")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=RESULTS / "load_agreement.json")
    args = parser.parse_args()
    with Service(target="null", null_ms=NULL_MS, timeout_ms=PATIENT_MS) as service:
        found = measure(f"{service.traffic}/v1/intent", args)
    report = {**provenance("load_agreement"), "null_ms": NULL_MS, **found}
    args.out.parent.mkdir(exist_ok=True)
    args.out.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report, indent=1))
    compared = [each for tool in found.values() if isinstance(tool, dict) for each in tool.values()]
    sys.exit(0 if all(each["agrees"] for each in compared) else 1)


def _output(command: list[str]) -> str:
    """Standard output; an exit code says what was found, so only silence is an error."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.stdout.strip():
        raise RuntimeError(f"{command[0]} said nothing and ended with {done.returncode}: {done.stderr[-500:]}")
    return done.stdout


if __name__ == "__main__":
    main()
