"""CloudWatch's embedded metric format (EMF): a line of JSON in a log, out of which CloudWatch takes metrics.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html

AWS's own library, aws-embedded-metrics, is not used: it takes single values, a hundred of a metric at most, where a
minute here has a million, and brings an HTTP client for an agent that a task doesn't have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import orjson

Unit = Literal["Count", "Count/Second", "Milliseconds", "Percent", "Seconds"]

# Of the specification and of PutMetricData.
MAX_DIMENSIONS = 30
MAX_NAME = 255
MAX_VALUE = 1024


@dataclass(frozen=True, slots=True)
class Distribution:
    """Values of which each came ``counts`` times, so that CloudWatch's percentiles and averages hold over all tasks.

    At most a hundred values. ``low`` is the least that was seen, ``high`` the greatest and ``total`` the sum. The
    members are those that AWS's collector for OpenTelemetry writes for a histogram; a bare array has no counts.
    """

    values: Sequence[float]
    counts: Sequence[float]
    low: float
    high: float
    total: float

    def percentile(self, percent: float) -> float:
        """The least value that ``percent`` of all don't exceed."""
        rank = sum(self.counts) * percent / 100
        seen = 0.0
        for value, count in zip(self.values, self.counts, strict=True):
            seen += count
            if seen >= rank:
                return value
        return self.values[-1]

    def as_json(self) -> dict[str, Any]:
        return {
            "Values": list(self.values),
            "Counts": list(self.counts),
            "Min": self.low,
            "Max": self.high,
            "Sum": self.total,
            "Count": sum(self.counts),
        }


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    unit: Unit
    value: float | Distribution


def write_line(
    metrics: Sequence[Metric],
    *,
    namespace: str,
    dimensions: Mapping[str, str],
    at_s: float,
    properties: Mapping[str, Any],
) -> bytes:
    """The document and a line's end. ``at_s`` is Unix time; ``properties`` are for who reads the log, no metrics."""
    definitions = [{"Name": metric.name, "Unit": metric.unit} for metric in metrics]
    directive = {"Namespace": namespace, "Dimensions": [list(dimensions)], "Metrics": definitions}
    document: dict[str, Any] = {"_aws": {"Timestamp": round(at_s * 1000), "CloudWatchMetrics": [directive]}}
    document.update(dimensions)
    for metric in metrics:
        value = metric.value
        document[metric.name] = value.as_json() if isinstance(value, Distribution) else value
    document.update(properties)
    return orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE)


def check_namespace(namespace: str) -> None:
    """Raises ``ValueError`` for what CloudWatch takes no metrics under."""
    _check_text("the namespace", namespace, MAX_NAME)
    if not all(character.isalnum() or character in "._-/#: " for character in namespace):
        raise ValueError(f"the namespace {namespace!r} may hold letters, digits and . _ - / # : only")
    if namespace.startswith((":", "AWS/")):
        raise ValueError(f"the namespace {namespace!r} may not start with : or AWS/")


def parse_dimensions(text: str) -> dict[str, str]:
    """``Name=value,Name=value`` as a mapping. Raises ``ValueError`` naming the dimension that can't be one."""
    dimensions: dict[str, str] = {}
    for pair in text.split(",") if text else []:
        name, equals, value = pair.strip().partition("=")
        if not equals:
            raise ValueError(f"the dimension {pair.strip()!r} is not Name=value")
        _check_text(f"the name of the dimension {name!r}", name, MAX_NAME)
        _check_text(f"the value of the dimension {name!r}", value, MAX_VALUE)
        if not name[0].isupper():  # all else in the document starts with a small one
            raise ValueError(f"the name of the dimension {name!r} doesn't start with a capital letter")
        if name in dimensions:
            raise ValueError(f"the dimension {name!r} is there twice")
        dimensions[name] = value
    if len(dimensions) > MAX_DIMENSIONS:
        raise ValueError(f"{len(dimensions)} dimensions; {MAX_DIMENSIONS} at most")
    return dimensions


def _check_text(what: str, text: str, limit: int) -> None:
    if not text.strip():
        raise ValueError(f"{what} is empty")
    if len(text) > limit:
        raise ValueError(f"{what} has {len(text)} characters; {limit} at most")
    if not (text.isascii() and text.isprintable()):
        raise ValueError(f"{what} may hold printable ASCII characters only")
