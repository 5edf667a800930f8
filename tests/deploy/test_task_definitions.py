"""The task definitions: accepted by ECS's own model, and in step with the settings of what they run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import boto3
import botocore.session
import pytest
from botocore.model import ListShape, Shape, StringShape, StructureShape
from botocore.validate import ParamValidator
from click.testing import CliRunner
from moto import mock_aws

from app.cpu_budget import share_out
from app.fleet import OUTLIVED_S
from app.settings import Settings
from deploy.task_definitions import (
    FAMILY,
    FILES,
    MACHINES,
    OPEN_FILES,
    Deployment,
    Machine,
    as_json,
    main,
    task_definition,
)
from tests.deploy.dockerfile import read_stages

STAGES = {stage.name: stage for stage in read_stages()}
# Elastic Load Balancing's own default, and the interval at which its health checks ask here.
BALANCER_INTERVAL_S, BALANCER_FAILURES = 5, 2


@pytest.fixture(params=list(MACHINES))
def machine(request: pytest.FixtureRequest) -> Machine:
    return MACHINES[request.param]


@pytest.fixture
def definition(machine: Machine) -> dict[str, Any]:
    """As committed, which is as generated."""
    committed: dict[str, Any] = json.loads(FILES[machine.target].read_text())
    return committed


@pytest.fixture
def container(definition: dict[str, Any]) -> dict[str, Any]:
    (only,) = definition["containerDefinitions"]
    return only


@pytest.fixture
def settings(machine: Machine, container: dict[str, Any]) -> Settings:
    """What the service reads in this task: the image's environment, and the task's over it."""
    image = STAGES[machine.target].pairs("ENV")
    task = {entry["name"]: entry["value"] for entry in container["environment"]}
    return Settings.read(image | task)


def test_the_committed_files_are_what_the_source_makes(machine: Machine) -> None:
    assert FILES[machine.target].read_text() == as_json(task_definition(machine, Deployment())), "run: make tasks"


# Of what ECS accepts.


def input_shape() -> Shape:
    service = botocore.session.get_session().get_service_model("ecs")
    shape: Shape = service.operation_model("RegisterTaskDefinition").input_shape
    return shape


def test_ecs_knows_every_field_and_its_type(definition: dict[str, Any]) -> None:
    assert ParamValidator().validate(definition, input_shape()).generate_report() == ""


def values_of_enums(value: Any, shape: Shape) -> Iterator[tuple[str, str, list[str]]]:
    """Each value whose type lists what it may be, which botocore's own validation passes over."""
    if isinstance(shape, StructureShape):
        for name, member in value.items():
            yield from values_of_enums(member, shape.members[name])
    elif isinstance(shape, ListShape):
        for element in value:
            yield from values_of_enums(element, shape.member)
    elif isinstance(shape, StringShape) and shape.enum:
        yield shape.name, value, shape.enum


def test_ecs_knows_every_value_of_an_enumeration(definition: dict[str, Any]) -> None:
    found = list(values_of_enums(definition, input_shape()))
    assert [(name, value) for name, value, allowed in found if value not in allowed] == []
    assert {"NetworkMode", "CPUArchitecture", "LogDriver", "UlimitName"} <= {name for name, *_ in found}


@mock_aws
def test_it_can_be_registered(definition: dict[str, Any]) -> None:
    registered = boto3.client("ecs", region_name="us-east-1").register_task_definition(**definition)["taskDefinition"]
    assert registered["status"] == "ACTIVE"
    assert (registered["family"], registered["revision"]) == (definition["family"], 1)
    (sent,), (kept,) = definition["containerDefinitions"], registered["containerDefinitions"]
    assert {name: kept[name] for name in sent} == sent


def test_durations_are_within_what_ecs_allows(container: dict[str, Any]) -> None:
    health = container["healthCheck"]
    assert 5 <= health["interval"] <= 300
    assert 2 <= health["timeout"] <= 60
    assert 1 <= health["retries"] <= 10
    assert 0 <= health["startPeriod"] <= 300
    assert 2 <= container["stopTimeout"] <= 120  # Fargate's


# Of the machine.


def test_the_repository_has_the_reference_systems_machine_at_its_root() -> None:
    machine = MACHINES["inf1"]
    assert FILES["inf1"].name == "ecs-task.json"
    assert (machine.instance_type, machine.chips, machine.cores) == ("inf1.6xlarge", 4, 16)


def test_a_replica_sits_on_every_core_of_every_chip(
    machine: Machine, container: dict[str, Any], settings: Settings
) -> None:
    devices = container["linuxParameters"].get("devices", [])
    assert [device["hostPath"] for device in devices] == [f"/dev/neuron{chip}" for chip in range(machine.chips)]
    assert all(device["containerPath"] == device["hostPath"] for device in devices)
    assert settings.workers * settings.replicas == machine.cores
    assert (settings.workers, settings.replicas) == share_out(machine.cores, workers=0, replicas=0)


@pytest.mark.parametrize("name", [name for name, machine in MACHINES.items() if machine.instance_type])
def test_a_task_goes_to_its_own_kind_of_machine_and_has_it_for_itself(name: str) -> None:
    machine = MACHINES[name]
    definition = task_definition(machine, Deployment())
    (container,) = definition["containerDefinitions"]
    expressions = [constraint["expression"] for constraint in definition["placementConstraints"]]
    assert f"attribute:ecs.instance-type == {machine.instance_type}" in expressions
    assert machine.vcpus / 2 < container["cpu"] / 1024 < machine.vcpus
    assert machine.memory_gib / 2 < container["memory"] / 1024 < machine.memory_gib
    assert not {"cpu", "memory"} & set(definition), "a task's size is a quota, and a quota throttles"


def test_fargate_gets_a_size_that_it_has_and_nothing_that_it_refuses() -> None:
    definition = task_definition(MACHINES["cpu"], Deployment())
    (container,) = definition["containerDefinitions"]
    assert definition["requiresCompatibilities"] == ["FARGATE"]
    assert (definition["cpu"], int(definition["memory"])) == ("4096", 8192)  # of 4 vCPU: 8 to 30 GiB in steps of 1 GiB
    assert "placementConstraints" not in definition
    assert not {"devices", "sharedMemorySize", "maxSwap", "swappiness"} & set(container["linuxParameters"])
    assert "add" not in container["linuxParameters"]["capabilities"]


# Of the service's own times and limits.


def test_ecs_waits_for_the_whole_drain_before_it_kills(container: dict[str, Any], settings: Settings) -> None:
    assert settings.drain_delay_s + settings.drain_timeout_s + OUTLIVED_S < container["stopTimeout"]


def test_the_drains_delay_outlasts_the_balancers_noticing(settings: Settings) -> None:
    assert settings.drain_delay_s > BALANCER_INTERVAL_S * BALANCER_FAILURES


def test_an_idle_connection_is_closed_by_the_balancer_and_never_under_its_hands(settings: Settings) -> None:
    assert settings.keep_alive_s > settings.balancer_idle_s == 60


def test_failed_checks_count_only_once_the_load_is_given_up(container: dict[str, Any], settings: Settings) -> None:
    assert container["healthCheck"]["startPeriod"] > settings.load_timeout_s


def test_the_health_check_is_the_images_own(machine: Machine, container: dict[str, Any]) -> None:
    _, _, command = STAGES[machine.target].only("HEALTHCHECK").partition(" CMD ")
    assert container["healthCheck"]["command"] == ["CMD", *json.loads(command)]
    assert container["user"] == STAGES[machine.target].only("USER")


def test_both_ports_are_mapped(container: dict[str, Any], settings: Settings) -> None:
    ports = {mapping["name"]: mapping["containerPort"] for mapping in container["portMappings"]}
    assert ports == {"traffic": settings.port, "operations": settings.ops_port}
    assert (settings.host, settings.ops_host) == ("0.0.0.0", "0.0.0.0")


def test_a_worker_may_open_as_many_files_as_it_takes_connections(container: dict[str, Any], settings: Settings) -> None:
    (limit,) = container["ulimits"]
    assert limit == {"name": "nofile", "softLimit": OPEN_FILES, "hardLimit": OPEN_FILES}
    assert settings.max_connections < OPEN_FILES / 2


# Of what it may do.


def test_the_root_is_read_only_and_no_capability_is_left_but_what_neuron_needs(
    machine: Machine, container: dict[str, Any]
) -> None:
    linux = container["linuxParameters"]
    assert container["readonlyRootFilesystem"] is True
    assert [mount["containerPath"] for mount in linux["tmpfs"]] == ["/tmp"]
    assert linux["capabilities"] == {"drop": ["ALL"]} | ({"add": ["IPC_LOCK"]} if machine.chips else {})
    assert not container.get("privileged")
    assert not container["user"].startswith(("0", "root"))


def test_there_are_two_roles_and_secrets_are_references(definition: dict[str, Any], container: dict[str, Any]) -> None:
    assert definition["taskRoleArn"] != definition["executionRoleArn"]
    assert all(re.match(r"arn:aws:(ssm|secretsmanager):", secret["valueFrom"]) for secret in container["secrets"])
    named = [entry["name"] for entry in [*container["secrets"], *container["environment"]]]
    assert len(named) == len(set(named))
    assert {name.removeprefix("QUERY_INTENT_").lower() for name in named} - {"aws_region"} <= set(Settings.model_fields)


def test_a_log_service_that_stalls_stalls_no_request(container: dict[str, Any]) -> None:
    options = container["logConfiguration"]["options"]
    assert options["mode"] == "non-blocking"
    assert options["awslogs-group"] == f"/ecs/{FAMILY}"


# Of the command.


def test_the_command_prints_a_definition_for_ones_own_account() -> None:
    arguments = ["cpu", "--account", "111122223333", "--region", "eu-west-1", "--tag", "7"]
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    expected = task_definition(MACHINES["cpu"], Deployment("111122223333", "eu-west-1", "7"))
    assert json.loads(result.output) == expected
    assert "123456789012" not in result.output
    assert "us-east-1" not in result.output
    image = expected["containerDefinitions"][0]["image"]
    assert image == "111122223333.dkr.ecr.eu-west-1.amazonaws.com/query-intent:7-cpu"


@pytest.mark.parametrize("account", ["", "12345678901", "1234567890123", "my-account"])
def test_what_is_no_account_is_refused(account: str) -> None:
    result = CliRunner().invoke(main, ["cpu", "--account", account])
    assert result.exit_code == 2
    assert f"'{account}' is not twelve digits" in result.output
