"""Settings: read once, typed, frozen; an unknown name or a bad value stops the start and is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from app.errors import SettingsError
from app.settings import FOREIGN, PREFIX, SHIPPED_BUNDLE, Settings


def read(**variables: str) -> Settings:
    return Settings.read({PREFIX + name: value for name, value in variables.items()})


def test_the_defaults_serve_the_shipped_bundle_on_this_machine_only() -> None:
    """F1: and idle connections outlive the 60 s of a load balancer."""
    settings = Settings.read({})
    assert (settings.host, settings.port) == ("127.0.0.1", 8080)
    assert (settings.ops_host, settings.ops_port) == ("127.0.0.1", 8081)
    assert (settings.bundle, settings.target) == (str(SHIPPED_BUNDLE), "auto")
    assert (settings.slo_ms, settings.timeout_ms, settings.quorum) == (10, 100, 0.5)
    assert (settings.max_queries, settings.max_body_bytes, settings.max_list_body_bytes) == (128, 65_536, 1_048_576)
    assert (settings.keep_alive_s, settings.drain_delay_s) == (75, 0)
    assert settings.cache_bytes > 0
    assert settings.fallback == "on"
    assert settings.log_queries is False


def test_a_variable_sets_its_field() -> None:
    settings = read(PORT="9000", BUNDLE="/srv/bundle", SLO_MS="7.5", LOG_QUERIES="true", TARGET="null")
    assert settings.port == 9000
    assert settings.bundle == "/srv/bundle"
    assert settings.slo_ms == 7.5
    assert settings.log_queries is True
    assert settings.target == "null"


def test_a_flag_wins_over_the_environment_and_one_that_is_not_given_does_not() -> None:
    settings = Settings.read(
        {"QUERY_INTENT_PORT": "9000", "QUERY_INTENT_WORKERS": "3"}, {"port": "9001", "workers": None}
    )
    assert (settings.port, settings.workers) == (9001, 3)


def test_other_programs_variables_are_none_of_its_business() -> None:
    assert (
        Settings.read({"PORT": "1", "QUERY_INTENTS": "2", "PATH": "/bin"} | dict.fromkeys(FOREIGN, "x")) == Settings()
    )


@pytest.mark.parametrize("name", ["PROT", "SLO", "", "PORT_"])
def test_an_unknown_setting_is_named(name: str) -> None:
    """F14."""
    with pytest.raises(SettingsError, match=f"^QUERY_INTENT_{name}: no such setting; see query-intent serve --help$"):
        read(**{name: "1"})


# field, the values at and inside its limits, the values just outside
LIMITS: list[tuple[str, list[str], list[str]]] = [
    ("host", ["127.0.0.1", "::", "localhost"], [""]),
    ("ops_host", ["0.0.0.0"], [""]),
    ("balancer_idle_s", ["0", "60", "70"], ["-1", "1.5"]),
    ("port", ["0", "1", "65535"], ["-1", "65536", "http", "", "80.5"]),
    ("ops_port", ["0", "65535"], ["-1", "65536"]),
    ("target", ["auto", "cpu", "torch", "inf1", "inf2", "null"], ["gpu", "", "CPU", "inf3"]),
    ("placement", ["replicas", "data-parallel"], ["", "data_parallel", "auto"]),
    ("null_ms", ["0", "0.5", "10000"], ["-0.1", "10000.1", "nan"]),
    ("workers", ["0", "1", "256"], ["-1", "257"]),
    ("replicas", ["0", "1", "256"], ["-1", "257"]),
    ("quorum", ["0", "0.5", "1"], ["-0.01", "1.01", "nan"]),
    ("slo_ms", ["0.1", "10000"], ["0", "10000.1", "nan", "inf"]),
    ("timeout_ms", ["1", "10000"], ["0", "10001", "0.5"]),
    ("max_queries", ["1", "10000"], ["0", "10001"]),
    ("max_body_bytes", ["256"], ["0", "255"]),
    ("max_list_body_bytes", ["256"], ["0", "255"]),
    ("max_connections", ["1"], ["0"]),
    ("queue_tokens", ["16"], ["0", "15"]),
    ("emf", ["off", "QueryIntent", "a/b"], ["", ":a", "AWS/ECS"]),
    ("emf_dimensions", ["", "Service=a", "Service=a,Stage=b"], ["Service", "Service=", "stage=b"]),
    ("cache_bytes", ["0", "65536"], ["-1", "1", "65535"]),
    ("cache_ttl_s", ["0.1", "86400"], ["0", "nan", "inf"]),
    ("keep_alive_s", ["1"], ["0"]),
    ("read_timeout_s", ["0.1"], ["0", "nan", "inf"]),
    ("load_timeout_s", ["0.1"], ["0", "inf"]),
    ("stall_timeout_s", ["0.1"], ["0", "inf"]),
    ("drain_delay_s", ["0", "20"], ["-1", "inf"]),
    ("drain_timeout_s", ["0"], ["-1", "inf"]),
    ("fallback", ["on", "off"], ["", "true", "ON"]),
    ("log_level", ["debug", "info", "warning", "error"], ["loud", "INFO"]),
    ("log_queries", ["true", "false", "1", "0", "yes"], ["perhaps", ""]),
]


@pytest.mark.parametrize(("field", "value"), [(field, value) for field, values, _ in LIMITS for value in values])
def test_values_up_to_the_limit_are_taken(field: str, value: str) -> None:
    read(**{field.upper(): value})


@pytest.mark.parametrize(("field", "value"), [(field, value) for field, _, values in LIMITS for value in values])
def test_a_bad_value_is_named_with_its_variable_and_limit(field: str, value: str) -> None:
    with pytest.raises(SettingsError) as refusal:
        read(**{field.upper(): value})
    message = str(refusal.value)
    assert message.startswith(f"QUERY_INTENT_{field.upper()}={value}: ")
    assert "\n" not in message


def test_every_setting_with_a_limit_is_tested_at_it() -> None:
    free = {"bundle", "overrides", "priors", "warm_queries"}
    assert {field for field, _, _ in LIMITS} == set(Settings.model_fields) - free


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(SettingsError) as refusal:
        read(PORT="x", SLO_MS="0", NOPE="1")
    assert [part.split(":")[0] for part in str(refusal.value).split("; ")[:3]] == [
        "QUERY_INTENT_PORT=x",
        "QUERY_INTENT_SLO_MS=0",
        "QUERY_INTENT_NOPE",
    ]


@pytest.mark.parametrize(
    ("variables", "collide"),
    [
        ({"PORT": "9000", "OPS_PORT": "9000"}, True),
        ({"PORT": "9000", "OPS_PORT": "9001"}, False),
        ({"PORT": "0", "OPS_PORT": "0"}, False),
        ({"PORT": "9000", "OPS_PORT": "9000", "OPS_HOST": "127.0.0.2"}, False),
    ],
)
def test_traffic_and_operations_can_not_share_a_port(variables: dict[str, str], collide: bool) -> None:
    if not collide:
        read(**variables)
        return
    with pytest.raises(SettingsError, match="ops_port: 9000 is the traffic port as well"):
        read(**variables)


def test_they_can_not_be_changed_once_read() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Settings().port = 1  # type: ignore[misc]


def test_they_survive_the_way_to_a_worker() -> None:
    settings = read(PORT="0", SLO_MS="7.25", BUNDLE="/srv/bundle", DRAIN_DELAY_S="20")
    assert Settings.model_validate_json(settings.model_dump_json()) == settings


def test_without_a_cache_there_is_nothing_to_warm() -> None:
    assert read(WARM_QUERIES="top.txt").warm_queries == Path("top.txt")
    with pytest.raises(SettingsError, match="warm_queries: there is no cache to warm, since cache_bytes is 0"):
        read(WARM_QUERIES="top.txt", CACHE_BYTES="0")


@pytest.mark.parametrize("field", Settings.model_fields)
def test_each_says_what_it_bounds(field: str) -> None:
    description: Any = Settings.model_fields[field].description
    assert description.endswith(".")


@pytest.mark.parametrize(("keep_alive_s", "idle_s"), [("64", "60"), ("60", "60"), ("75", "120"), ("75", "71")])
def test_connections_that_end_before_the_balancer_lets_go_of_them_are_refused(keep_alive_s: str, idle_s: str) -> None:
    """F1: at least 5 s longer, since a query may be on its way when the balancer's time is up."""
    with pytest.raises(
        SettingsError, match=rf"keep_alive_s: {keep_alive_s} is too short for balancer_idle_s {idle_s}; it must be \d+ "
    ):
        read(KEEP_ALIVE_S=keep_alive_s, BALANCER_IDLE_S=idle_s)
    assert read(KEEP_ALIVE_S="65", BALANCER_IDLE_S="60").keep_alive_s == 65


def test_a_bundle_is_a_folder_or_a_pinned_address_in_s3() -> None:
    address = f"s3://models/query-intent/4#sha256={'0a' * 32}"
    assert read(BUNDLE=address).bundle == address
    for wrong in (
        "s3://models/query-intent",
        "s3://models#sha256=" + "0a" * 32,
        address[:-1],
        address.upper().replace("S3", "s3"),
    ):
        with pytest.raises(
            SettingsError, match=r"^QUERY_INTENT_BUNDLE=s3://.*: a bundle in S3 is s3://BUCKET/PREFIX#sha"
        ):
            read(BUNDLE=wrong)
