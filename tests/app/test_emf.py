"""The embedded metric format: lines that CloudWatch reads, and a start that names what it would not."""

from __future__ import annotations

import re

import jsonschema
import pytest

from app.emf import Distribution, Metric, check_namespace, parse_dimensions, write_line
from tests.emf_schema import parse

SOME = Distribution([1.0, 2.0, 5.0], [90, 9, 1], low=0.5, high=5.0, total=110.0)


def written(*metrics: Metric, dimensions: str = "Service=intent", **properties: object) -> bytes:
    return write_line(
        metrics,
        namespace="Shop",
        dimensions=parse_dimensions(dimensions),
        at_s=1_700_000_000.25,
        properties=properties,
    )


def test_a_line_says_what_its_numbers_are_and_has_them_beside_it() -> None:
    line = written(Metric("requests", "Count", 7), Metric("latency", "Milliseconds", SOME), note="x")
    document = parse(line)
    assert document["_aws"] == {
        "Timestamp": 1_700_000_000_250,
        "CloudWatchMetrics": [
            {
                "Namespace": "Shop",
                "Dimensions": [["Service"]],
                "Metrics": [{"Name": "requests", "Unit": "Count"}, {"Name": "latency", "Unit": "Milliseconds"}],
            }
        ],
    }
    assert (document["Service"], document["requests"], document["note"]) == ("intent", 7, "x")
    assert document["latency"]["Values"] == [1, 2, 5]
    assert document["latency"]["Counts"] == [90, 9, 1]
    assert document["latency"]["Count"] == 100


def test_without_dimensions_a_metric_has_one_series() -> None:
    document = parse(written(Metric("requests", "Count", 1), dimensions=""))
    assert document["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [[]]


@pytest.mark.parametrize(("percent", "value"), [(0, 1), (50, 1), (90, 1), (90.1, 2), (99, 2), (99.9, 5), (100, 5)])
def test_a_percentile_is_the_least_value_that_so_many_do_not_exceed(percent: float, value: float) -> None:
    assert SOME.percentile(percent) == value


def test_the_schema_refuses_what_the_specification_does() -> None:
    """Or the tests with it would prove nothing."""
    line = written(Metric("requests", "Count", 7), Metric("latency", "Milliseconds", SOME))
    parse(line)
    for wrong in (
        line.replace(b'"Timestamp":1700000000250', b'"Timestamp":"now"'),
        line.replace(b'"Unit":"Count"', b'"Unit":"Counts"'),
        line.replace(b'"requests":7', b'"requests":"7"'),
        line.replace(b'"Counts":[90', b'"Counts":[0'),
        line.replace(b'[["Service"]]', b"[]"),
    ):
        assert wrong != line
        with pytest.raises(jsonschema.ValidationError):
            parse(wrong)


@pytest.mark.parametrize(
    ("text", "dimensions"),
    [
        ("", {}),
        ("Service=query-intent", {"Service": "query-intent"}),
        ("Service=a, Stage=b=c", {"Service": "a", "Stage": "b=c"}),
        (f"{'N' * 255}={'v' * 1024}", {"N" * 255: "v" * 1024}),
    ],
)
def test_dimensions_are_names_with_values(text: str, dimensions: dict[str, str]) -> None:
    assert parse_dimensions(text) == dimensions


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Service", "the dimension 'Service' is not Name=value"),
        ("Service=a,", "the dimension '' is not Name=value"),
        ("Service=", "the value of the dimension 'Service' is empty"),
        ("=a", "the name of the dimension '' is empty"),
        ("Stadt=Köln", "the value of the dimension 'Stadt' may hold printable ASCII characters only"),
        ("Service=a\tb", "the value of the dimension 'Service' may hold printable ASCII characters only"),
        (":Service=a", "the name of the dimension ':Service' doesn't start with a capital letter"),
        ("requests=a", "the name of the dimension 'requests' doesn't start with a capital letter"),
        ("_aws=a", "the name of the dimension '_aws' doesn't start with a capital letter"),
        ("Stage=a,Stage=b", "the dimension 'Stage' is there twice"),
        (f"{'N' * 256}=v", "has 256 characters; 255 at most"),
        (f"Stage={'v' * 1025}", "the value of the dimension 'Stage' has 1025 characters; 1024 at most"),
        (",".join(f"D{number}=v" for number in range(31)), "31 dimensions; 30 at most"),
    ],
)
def test_a_dimension_that_cloudwatch_would_refuse_is_named(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_dimensions(text)


@pytest.mark.parametrize("namespace", ["Q", "QueryIntent", "shop/query-intent", "a.b_c#d:e f", "N" * 255])
def test_a_namespace_is_taken(namespace: str) -> None:
    check_namespace(namespace)


@pytest.mark.parametrize("namespace", ["", " ", ":Shop", "AWS/ECS", "Shop$", "Köln", "N" * 256])
def test_a_namespace_that_cloudwatch_would_refuse_is_refused(namespace: str) -> None:
    with pytest.raises(ValueError, match="the namespace"):
        check_namespace(namespace)
