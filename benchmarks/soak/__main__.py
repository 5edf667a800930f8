"""Soak and chaos on a real service: ``python -m benchmarks.soak``, half an hour.

Starts a service of its own (supervisor and workers), asks for every text alone to know its answer, finds the rate that
the service can bear, then sends an open-loop Poisson mixture at a share of it: single queries short and long, lists,
deadlines of a few milliseconds, clients that close their socket at a random moment, and bad input of every kind that
benchmarks/bad_inputs.py knows. Now and then a worker gets SIGKILL.

Every request must end in a known way: with the answer that its query got alone, with a refusal that is documented for
it, by our own leaving, or with its connection lost just when a worker was killed. The exit code is 1 when one is
crossed, undocumented or unanswered, when memory (PSS of all processes; least squares, a level of its own after each
kill) grows by 1 MB/min or more, when fewer than 90 % of the patient single queries are answered, or when the service
logs an error that no kill explains. Writes soak.json and soak.png (with matplotlib) to --out; the progress goes to
standard error. Meant for a quiet machine.

    python -m benchmarks.soak                                            # the null target: what the service itself does
    python -m benchmarks.soak --target cpu                               # the shipped model; its answers are compared
    python -m benchmarks.soak --minutes 1 --rate 100 --kill-every-s 20 --settle-s 5       # does it work at all?
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.soak.run import Plan, soak

RESULTS = Path(__file__).parent.parent / "results"


def at_least(least: float, kind: type[int] | type[float] = float) -> Callable[[str], float]:
    def number(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is no number") from None
        if not least <= value < float("inf"):
            raise argparse.ArgumentTypeError(f"{text} is out of range; at least {least:g}")
        return value

    return number


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m benchmarks.soak", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--minutes", type=at_least(0.1), default=30, help="how long the load lasts (30)")
    add("--target", choices=("null", "cpu", "torch"), default="null", help="what computes the answers (null)")
    add("--rate", type=at_least(1), help="requests a second; found by a closed loop of 10 s unless given")
    add("--share", type=at_least(0.01), default=0.8, help="of the rate found, which is sent (0.8); not of --rate")
    add("--workers", type=at_least(1, int), default=2, help="worker processes (2): one serves while one is dead")
    add("--replicas", type=at_least(1, int), default=1, help="replicas a worker (1)")
    add(
        "--cache-bytes",
        type=at_least(0, int),
        default=65_536,
        help="of each worker (65536, the least there is: hits, misses, evictions and shared computations); 0 = off",
    )
    add("--texts", type=at_least(2, int), default=2000, help="distinct texts, an eighth of them long (2000)")
    add("--list-size", type=at_least(1, int), default=32, help="queries in a list at most (32)")
    add(
        "--kill-every-s",
        type=at_least(0),
        default=300,
        help="seconds from when the service is whole to the next SIGKILL (300); 0 kills nobody. Six deaths of a worker "
        "without a healthy minute between are a crash loop, at which the service gives up",
    )
    add(
        "--settle-s",
        type=at_least(0),
        default=60,
        help="seconds after the start and after each kill in which memory isn't sampled (60)",
    )
    add("--seed", type=at_least(0, int), default=0, help="of arrivals, kinds, texts, moments and victims")
    add("--out", type=Path, default=RESULTS, help="folder of soak.json and soak.png (benchmarks/results)")  # fmt: skip
    return parser.parse_args()


def main() -> int:
    options = vars(parse())
    out: Path = options.pop("out")
    is_terminal = sys.stderr.isatty()

    def show(line: str) -> None:
        print(f"\r{line}\x1b[K" if is_terminal else line, end="" if is_terminal else "\n", file=sys.stderr, flush=True)

    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        report = soak(Plan(**options), Path(folder) / "log", show=show)
    if is_terminal:
        print(file=sys.stderr)
    (out / "soak.json").write_text(json.dumps(report) + "\n")
    try:
        from benchmarks.soak.picture import draw
    except ImportError:
        print("no picture: matplotlib isn't installed", file=sys.stderr)
    else:
        draw(out / "soak.png", report)
    for sentence in report["wrong"]:
        print(f"wrong: {sentence}", file=sys.stderr)
    print(json.dumps({name: value for name, value in report.items() if name not in ("slices", "memory", "examples")}))
    return 1 if report["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
