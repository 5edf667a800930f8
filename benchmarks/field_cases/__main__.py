"""Field cases with long clocks: ``python -m benchmarks.field_cases NAME``.

Each tries on a service of its own what users of such servers ran into, and writes what it found to
benchmarks/results/field_cases/NAME.json; the exit code is 1 when the promise isn't kept. README.md beside this file has
all cases and the tests that hold their logic. Meant for a quiet machine; ``--scale 0.05`` shortens everything to see
whether it works, and then nothing is written.

    python -m benchmarks.field_cases keep-alive
    python -m benchmarks.field_cases all
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from pathlib import Path

from benchmarks.field_cases import connections, health, interpreter, isolation, overload, places, tail
from benchmarks.field_cases.case import FieldCase

RESULTS = Path(__file__).parent.parent / "results" / "field_cases"
CASES = sorted(
    (case for module in (connections, health, interpreter, isolation, overload, places, tail) for case in module.CASES),
    key=lambda case: int(case.number[1:]),
)


def scale(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from None
    if not 0.01 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is out of range; 0.01 to 1")
    return value


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m benchmarks.field_cases", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="name", required=True, metavar="NAME")
    for case in CASES:
        commands.add_parser(case.name, help=f"{case.number}, {case.minutes:g} min: {case.promise}".replace("%", "%%"))
    commands.add_parser("all", help=f"one after the other, {sum(case.minutes for case in CASES):.0f} min")
    for command in commands.choices.values():
        command.add_argument("--scale", type=scale, default=1.0, help="of all durations and counts (1)")
    return parser.parse_args()


def run(case: FieldCase, scale: float) -> bool:
    """Whether the promise is kept."""
    figures, wrong = case.measure(scale)
    report = {
        "case": case.number,
        "name": case.name,
        "promise": case.promise,
        "machine": f"{os.cpu_count()} x {platform.machine()}",
        "figures": figures,
        "wrong": wrong,
    }
    if scale == 1:
        RESULTS.mkdir(parents=True, exist_ok=True)
        (RESULTS / f"{case.name}.json").write_text(json.dumps(report, indent=1) + "\n")
    for sentence in wrong:
        print(f"{case.number} {case.name}: {sentence}", file=sys.stderr)
    print(json.dumps(report), flush=True)
    return not wrong


def main() -> int:
    args = parse()
    kept = [run(case, args.scale) for case in CASES if args.name in (case.name, "all")]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
