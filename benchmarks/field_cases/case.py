"""What a field case is, and the few things that all of them do."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np

from benchmarks.raw_http import Connection
from benchmarks.service import Service


class Finding(NamedTuple):
    """``wrong`` has a sentence for each promise that was not kept."""

    figures: dict[str, Any]
    wrong: list[str]


@dataclass(frozen=True, slots=True)
class FieldCase:
    """``measure`` gets a factor for its durations and counts: 1 for the real ones, less to try it out."""

    number: str
    name: str
    promise: str
    minutes: float
    measure: Callable[[float], Finding]


def unless(is_kept: bool, sentence: str) -> list[str]:
    return [] if is_kept else [sentence]


def address(service: Service) -> tuple[str, int]:
    parts = urlsplit(service.traffic)
    return str(parts.hostname), int(parts.port or 80)


def connect(service: Service) -> Connection:
    return Connection(address(service))


def start_load(service: Service, *options: str) -> subprocess.Popen[str]:
    """``query-intent load`` on single queries, in a process of its own."""
    command = [sys.executable, "-m", "app.tools.load", "--url", f"{service.traffic}/v1/intent", *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def result_of(load: subprocess.Popen[str]) -> dict[str, Any]:
    """Waits for a load and reads its line of JSON. Raises RuntimeError with what it said where there is none."""
    output, said = load.communicate()
    if not output:
        raise RuntimeError(f"query-intent load ended with {load.returncode}: {said}")
    result: dict[str, Any] = json.loads(output.splitlines()[-1])
    return result


def put_load(service: Service, rate: float, seconds: float, *options: str) -> dict[str, Any]:
    return result_of(start_load(service, "--rate", f"{rate:g}", "--duration", f"{seconds:g}", *options))


def percentile(values: Sequence[float], percent: float) -> float:
    return round(float(np.percentile(values, percent)), 3)


def brief(result: dict[str, Any]) -> dict[str, Any]:
    """What is kept of a load's report."""
    return {
        "rate": result["offered_rate"],
        "p50_ms": result["latency_ms"]["p50"],
        "p99_ms": result["latency_ms"]["p99"],
        "p99_9_ms": result["latency_ms"]["p99_9"],
        "statuses": result["statuses"],
        "errors": result["errors"],
        "late_share": result["lag"]["late_share"],
    }
