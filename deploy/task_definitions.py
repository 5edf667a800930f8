"""The ECS task definitions: ``ecs-task.json`` for an inf1.6xlarge and its variants, all from this one source.

``make tasks`` writes them again, for an account and a region that stand for yours. Your own, ready to be registered:

    python -m deploy.task_definitions inf1 --account 111122223333 --region eu-west-1 --tag 0.1.0 > task.json
    aws ecs register-task-definition --cli-input-json file://task.json

A task has its machine for itself: a NeuronCore belongs to one process, and ECS, which doesn't know of chips, would put
two tasks on one. So a task asks for more than half of the CPUs and of the memory.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from app.cpu_budget import share_out
from app.version import VERSION

ROOT = Path(__file__).parent.parent
FAMILY = "query-intent"
NAMESPACE = "QueryIntent"  # of CloudWatch; what service.yaml scales and alarms on

TRAFFIC_PORT, OPERATIONS_PORT = 8080, 8081
DRAIN_DELAY_S = 20  # a balancer that asks every 5 s has then noticed, and sends nothing more
BALANCER_IDLE_S = 60  # an Application Load Balancer's default; a start with a shorter KEEP_ALIVE_S is refused
STOP_TIMEOUT_S = 60  # then ECS kills: after the drain's delay and time-out, and what the supervisor adds to end workers
START_MARGIN_S = 30  # from the time-out of the load to the first failed check that counts
SCRATCH_MIB = 512  # /tmp, all that can be written: a bundle that is fetched, and the next one beside it
OPEN_FILES = 65_535  # of a worker: MAX_CONNECTIONS and what it has open anyway; Fargate's own value


@dataclass(frozen=True, slots=True)
class Machine:
    """What one task runs on. ``instance_type`` is None on Fargate, where the task's size is the machine's."""

    target: str
    instance_type: str | None
    vcpus: int
    memory_gib: int
    load_timeout_s: int  # to load and warm all replicas; at most 270, since ECS waits for 300 s at most
    chips: int = 0
    cores_per_chip: int = 0

    @property
    def cores(self) -> int:
        """How many replicas: one on each NeuronCore, else on each CPU."""
        return self.chips * self.cores_per_chip or self.vcpus


# Sizes: https://aws.amazon.com/ec2/instance-types/ (inf1, inf2); a Fargate task of 4 vCPU has at least 8 GiB.
MACHINES = {
    "inf1": Machine("inf1", "inf1.6xlarge", vcpus=24, memory_gib=48, load_timeout_s=240, chips=4, cores_per_chip=4),
    "inf2": Machine("inf2", "inf2.xlarge", vcpus=4, memory_gib=16, load_timeout_s=240, chips=1, cores_per_chip=2),
    "cpu": Machine("cpu", None, vcpus=4, memory_gib=8, load_timeout_s=60),
}
FILES = {
    "inf1": ROOT / "ecs-task.json",
    "inf2": ROOT / "deploy" / "tasks" / "inf2.json",
    "cpu": ROOT / "deploy" / "tasks" / "cpu.json",
}


@dataclass(frozen=True, slots=True)
class Deployment:
    """Whose account, where, and which image: ``query-intent:TAG-TARGET`` in the account's registry."""

    account: str = "123456789012"
    region: str = "us-east-1"
    tag: str = VERSION


def task_definition(machine: Machine, deployment: Deployment) -> dict[str, Any]:
    """The input of RegisterTaskDefinition."""
    role = f"arn:aws:iam::{deployment.account}:role/{FAMILY}"
    return {
        "family": f"{FAMILY}-{machine.target}",
        "taskRoleArn": f"{role}-task",
        "executionRoleArn": f"{role}-execution",
        "networkMode": "awsvpc",  # a security group of its own, and the balancer reaches it without a port of the host
        "runtimePlatform": {"cpuArchitecture": "X86_64", "operatingSystemFamily": "LINUX"},
        **(_on_instance(machine.instance_type) if machine.instance_type else _on_fargate(machine)),
        "containerDefinitions": [_container(machine, deployment)],
    }


def _on_instance(instance_type: str) -> dict[str, Any]:
    # No size of the task: it would be a quota, and who has used it up waits for the rest of 100 ms.
    constraints = ["attribute:ecs.os-type == linux", f"attribute:ecs.instance-type == {instance_type}"]
    return {
        "requiresCompatibilities": ["EC2"],
        "placementConstraints": [{"type": "memberOf", "expression": expression} for expression in constraints],
    }


def _on_fargate(machine: Machine) -> dict[str, Any]:
    return {
        "requiresCompatibilities": ["FARGATE"],
        "cpu": str(machine.vcpus * 1024),
        "memory": str(machine.memory_gib * 1024),
    }


def _container(machine: Machine, deployment: Deployment) -> dict[str, Any]:
    registry = f"{deployment.account}.dkr.ecr.{deployment.region}.amazonaws.com"
    return {
        "name": FAMILY,
        "image": f"{registry}/{FAMILY}:{deployment.tag}-{machine.target}",
        "essential": True,
        **_share(machine),
        "portMappings": [
            {"name": "traffic", "containerPort": TRAFFIC_PORT, "protocol": "tcp"},
            {"name": "operations", "containerPort": OPERATIONS_PORT, "protocol": "tcp"},
        ],
        "environment": [
            {"name": name, "value": value} for name, value in _environment(machine, deployment.region).items()
        ],
        # The service has no password. What is confidential, or changes without a release, comes in this way.
        "secrets": [
            {
                "name": "QUERY_INTENT_LOG_LEVEL",
                "valueFrom": f"arn:aws:ssm:{deployment.region}:{deployment.account}:parameter/{FAMILY}/log-level",
            }
        ],
        "healthCheck": {
            "command": ["CMD", "python", "-m", "app.healthcheck"],
            "interval": 10,
            "timeout": 5,
            "retries": 3,
            "startPeriod": machine.load_timeout_s + START_MARGIN_S,
        },
        "stopTimeout": STOP_TIMEOUT_S,
        "user": "10001:10001",
        "readonlyRootFilesystem": True,
        "linuxParameters": _linux(machine),
        "ulimits": [{"name": "nofile", "softLimit": OPEN_FILES, "hardLimit": OPEN_FILES}],
        "logConfiguration": {
            "logDriver": "awslogs",
            "options": {
                "awslogs-group": f"/ecs/{FAMILY}",
                "awslogs-region": deployment.region,
                "awslogs-stream-prefix": machine.target,
                # Blocking, the default, a log service that stalls would stall every request that logs.
                "mode": "non-blocking",
                "max-buffer-size": "25m",
            },
        },
    }


def _share(machine: Machine) -> dict[str, Any]:
    """What it reserves of an instance; one CPU and an eighth of the memory are left to the system and its agents."""
    if machine.instance_type is None:
        return {}
    return {"cpu": (machine.vcpus - 1) * 1024, "memory": machine.memory_gib * 1024 * 7 // 8}


def _environment(machine: Machine, region: str) -> dict[str, str]:
    """What differs from the settings' defaults here; addresses and target are the image's."""
    workers, replicas = share_out(machine.cores, workers=0, replicas=0)
    return {
        "QUERY_INTENT_WORKERS": str(workers),
        "QUERY_INTENT_REPLICAS": str(replicas),
        "QUERY_INTENT_LOAD_TIMEOUT_S": str(machine.load_timeout_s),
        "QUERY_INTENT_DRAIN_DELAY_S": str(DRAIN_DELAY_S),
        "QUERY_INTENT_BALANCER_IDLE_S": str(BALANCER_IDLE_S),
        "QUERY_INTENT_EMF": NAMESPACE,
        "QUERY_INTENT_EMF_DIMENSIONS": f"Service={FAMILY}-{machine.target}",
        "AWS_REGION": region,  # of a bundle in S3; ECS tells it on Fargate only
    }


def _linux(machine: Machine) -> dict[str, Any]:
    parameters: dict[str, Any] = {
        "initProcessEnabled": True,  # the first process ignores a SIGTERM that comes before it has a handler
        "capabilities": {"drop": ["ALL"]},
        "tmpfs": [{"containerPath": "/tmp", "size": SCRATCH_MIB, "mountOptions": ["rw", "nosuid", "nodev", "noexec"]}],
    }
    if machine.chips:
        # AWS's own example of a Neuron task adds it, for memory that the driver pins.
        parameters["capabilities"]["add"] = ["IPC_LOCK"]
        parameters["devices"] = [_device(f"/dev/neuron{chip}") for chip in range(machine.chips)]
    return parameters


def _device(path: str) -> dict[str, Any]:
    return {"hostPath": path, "containerPath": path, "permissions": ["read", "write"]}


def as_json(definition: dict[str, Any]) -> str:
    return json.dumps(definition, indent=2) + "\n"


def _twelve_digits(_context: click.Context, _parameter: click.Parameter, account: str) -> str:
    if re.fullmatch(r"[0-9]{12}", account) is None:
        raise click.BadParameter(f"'{account}' is not twelve digits")
    return account


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("target", type=click.Choice(list(MACHINES)), required=False)
@click.option("--account", default=Deployment().account, show_default=True, callback=_twelve_digits, help="Of AWS.")
@click.option("--region", default=Deployment().region, show_default=True)
@click.option("--tag", default=Deployment().tag, show_default=True, help="Of the image, before -TARGET.")
def main(target: str | None, account: str, region: str, tag: str) -> None:
    """Print the task definition of TARGET; without one, write all those of the repository again."""
    if target is not None:
        click.echo(as_json(task_definition(MACHINES[target], Deployment(account, region, tag))), nl=False)
        return
    for name, path in FILES.items():
        path.write_text(as_json(task_definition(MACHINES[name], Deployment())))


if __name__ == "__main__":
    main()
