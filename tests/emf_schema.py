"""The embedded metric format as AWS specifies it: the published schema, and what its prose adds to that.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
"""

from __future__ import annotations

import json
from typing import Any

import jsonschema

_NAME = {"type": "string", "minLength": 1, "maxLength": 255}
_MULTIPLES = [f"{prefix}{unit}" for unit in ("bytes", "bits") for prefix in ("kilo", "mega", "giga", "tera")]
_SIZES = ["Bytes", "Bits", *(name.capitalize() for name in _MULTIPLES)]
UNITS = [
    *("Seconds", "Microseconds", "Milliseconds", "Percent", "Count", "Count/Second", "None"),
    *_SIZES,
    *(f"{size}/Second" for size in _SIZES),
]
SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "required": ["_aws"],
    "properties": {
        "_aws": {
            "type": "object",
            "required": ["Timestamp", "CloudWatchMetrics"],
            "properties": {
                "Timestamp": {"type": "integer"},
                "CloudWatchMetrics": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["Namespace", "Dimensions", "Metrics"],
                        "additionalProperties": False,
                        "properties": {
                            "Namespace": _NAME,
                            "Dimensions": {
                                "type": "array",
                                "minItems": 1,
                                "items": {"type": "array", "maxItems": 30, "items": _NAME},
                            },
                            "Metrics": {
                                "type": "array",
                                "maxItems": 100,
                                "items": {
                                    "type": "object",
                                    "required": ["Name"],
                                    "additionalProperties": False,
                                    "properties": {"Name": _NAME, "Unit": {"enum": UNITS}},
                                },
                            },
                        },
                    },
                },
            },
        }
    },
}
_NUMBERS = {"type": "array", "minItems": 1, "maxItems": 100, "items": {"type": "number"}}
_STATISTICS = ["Values", "Counts", "Min", "Max", "Sum", "Count"]
# A histogram's members are those of MetricDatum in PutMetricData, as AWS's collector for OpenTelemetry writes them.
TARGET: dict[str, Any] = {
    "oneOf": [
        {"type": "number"},
        {
            "type": "object",
            "required": _STATISTICS,
            "additionalProperties": False,
            "properties": {name: {"type": "number"} for name in _STATISTICS[2:]}
            | {"Values": _NUMBERS, "Counts": _NUMBERS | {"items": {"type": "number", "exclusiveMinimum": 0}}},
        },
    ]
}
# Docker hands a log driver at most so much of a line at once; CloudWatch Logs takes 256 KiB.
MAX_LINE_BYTES = 16_384


def parse(line: bytes) -> dict[str, Any]:
    """The document of a line that keeps to the specification; an AssertionError or ValidationError for another."""
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert len(line) <= MAX_LINE_BYTES
    document: dict[str, Any] = json.loads(line)
    jsonschema.validate(document, SCHEMA)
    for directive in document["_aws"]["CloudWatchMetrics"]:
        for dimension in (name for names in directive["Dimensions"] for name in names):
            assert isinstance(document[dimension], str)
        names = [definition["Name"] for definition in directive["Metrics"]]
        assert len(names) == len(set(names))
        for name in names:
            jsonschema.validate(document[name], TARGET)
            _check_statistics(document[name])
    return document


def _check_statistics(target: Any) -> None:
    if isinstance(target, dict):
        assert len(target["Values"]) == len(target["Counts"])
        assert target["Count"] == sum(target["Counts"])
        tolerance = 1e-6 * max(1.0, abs(target["Sum"]))  # of sums of floating-point numbers
        assert target["Min"] * target["Count"] - tolerance <= target["Sum"]
        assert target["Sum"] <= target["Max"] * target["Count"] + tolerance
