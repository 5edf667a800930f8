"""The CloudFormation template: clean, in step with the task and the settings, with a runbook for each alarm."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest
from cfnlint.api import lint_file

from app.cloudwatch import Minute, Scrape
from app.fleet import OUTLIVED_S
from app.settings import Settings
from deploy.task_definitions import FAMILY, FILES, MACHINES, NAMESPACE
from tests.deploy.template import PATH, ROOT, Resources, read_template, sections

# The only actions with Resource "*": they know no resource (Service Authorization Reference, of ECS and of ECR).
WITHOUT_RESOURCE = {"ecs:DiscoverPollEndpoint", "ecr:GetAuthorizationToken"}


@pytest.fixture(scope="module")
def template() -> dict[str, Any]:
    return read_template()


@pytest.fixture(scope="module")
def resources(template: dict[str, Any]) -> Resources:
    return Resources(template)


@pytest.fixture(scope="module")
def container() -> dict[str, Any]:
    (only,) = json.loads(FILES["inf1"].read_text())["containerDefinitions"]
    return only


@pytest.fixture(scope="module")
def settings(container: dict[str, Any]) -> Settings:
    return Settings.read({entry["name"]: entry["value"] for entry in container["environment"]})


@pytest.fixture(scope="module")
def emitted() -> set[str]:
    """Every metric that a task can send, of a minute in which everything happened."""
    prefix = "query_intent_"
    totals = {
        "requests_total": '{route="/v1/intent",status="200",source="model"}',
        "cache_total": '{result="hit"}',
        "predictions_total": '{intent="media"}',
        "neuron_errors_total": '{kind="hardware"}',
        **{f"stage_seconds_bucket{{stage={json.dumps(s)},le={json.dumps('+Inf')}}}": "" for s in STAGES},
    }
    lines = [f"{prefix}{name}{labels} 8" for name, labels in totals.items()]
    lines += [f"{prefix}{name} 4" for name in ("replicas", "neuron_monitor_up", *STARTS)]
    minute = Minute(Scrape(b""), Scrape("\n".join([*lines, ""]).encode()), 60.0)
    return {metric.name for metric in minute.metrics()}


STAGES = ("queue", "inference", "total")
STARTS = ("start_to_ready_seconds", "boot_to_ready_seconds")


def test_cfn_lint_finds_nothing() -> None:
    assert [str(match) for match in lint_file(PATH)] == []
    assert "cfn-lint" not in PATH.read_text(), "a finding was waved away"


# Of the task.


def test_it_is_made_for_the_task_definition_at_the_root(template: dict[str, Any], container: dict[str, Any]) -> None:
    defaults = {name: parameter.get("Default") for name, parameter in template["Parameters"].items()}
    definition = json.loads(FILES["inf1"].read_text())
    assert defaults["ServiceName"] == definition["family"]
    assert defaults["InstanceType"] == MACHINES["inf1"].instance_type
    assert defaults["TrafficContainer"] == container["name"]
    ports = {mapping["name"]: mapping["containerPort"] for mapping in container["portMappings"]}
    assert (defaults["TrafficPort"], defaults["OperationsPort"]) == (ports["traffic"], ports["operations"])
    kinds = {machine.instance_type for machine in MACHINES.values() if machine.instance_type}
    assert set(template["Parameters"]["InstanceType"]["AllowedValues"]) == kinds


def test_what_the_task_definition_names_is_made_here(resources: Resources, container: dict[str, Any]) -> None:
    definition = json.loads(FILES["inf1"].read_text())
    roles = {role.get("RoleName") for role in resources.of_type("AWS::IAM::Role").values()}
    assert {definition[name].rpartition("/")[2] for name in ("taskRoleArn", "executionRoleArn")} <= roles
    assert resources.properties("LogGroup")["LogGroupName"] == container["logConfiguration"]["options"]["awslogs-group"]
    assert container["image"].split("/")[1].startswith(f"{resources.properties('Repository')['RepositoryName']}:")
    (secret,) = container["secrets"]
    assert secret["valueFrom"].endswith(f":parameter{resources.properties('LogLevel')['Name']}")


def test_the_metrics_are_the_tasks_own(template: dict[str, Any], settings: Settings) -> None:
    assert settings.emf == NAMESPACE
    assert settings.emf_dimensions == f"Service={template['Parameters']['ServiceName']['Default']}"
    assert template["Parameters"]["ServiceName"]["Default"] == f"{FAMILY}-inf1"


# Of a deploy that nobody notices.


def attributes(properties: dict[str, Any], name: str) -> dict[str, str]:
    return {entry["Key"]: entry["Value"] for entry in properties[name]}


def test_the_balancer_closes_idle_connections_before_the_service_does(resources: Resources, settings: Settings) -> None:
    """F1."""
    idle_s = int(attributes(resources.properties("Balancer"), "LoadBalancerAttributes")["idle_timeout.timeout_seconds"])
    assert settings.balancer_idle_s == idle_s
    assert settings.keep_alive_s >= idle_s + 5


def test_a_draining_task_is_left_alone_before_it_stops_accepting(
    resources: Resources, settings: Settings, container: dict[str, Any]
) -> None:
    """F2."""
    targets = resources.properties("Targets")
    noticed_s = targets["HealthCheckIntervalSeconds"] * targets["UnhealthyThresholdCount"]
    assert settings.drain_delay_s >= noticed_s + 5
    deregistered_s = int(attributes(targets, "TargetGroupAttributes")["deregistration_delay.timeout_seconds"])
    drained_s = settings.drain_delay_s + settings.drain_timeout_s
    assert deregistered_s <= drained_s
    assert drained_s + OUTLIVED_S < container["stopTimeout"]


def test_traffic_goes_to_the_least_busy_of_the_ready_ones(resources: Resources) -> None:
    targets = resources.properties("Targets")
    assert attributes(targets, "TargetGroupAttributes")["load_balancing.algorithm.type"] == "least_outstanding_requests"
    assert (targets["HealthCheckPort"], targets["HealthCheckPath"]) == (Settings().ops_port, "/readyz")
    assert targets["HealthCheckTimeoutSeconds"] < targets["HealthCheckIntervalSeconds"]


def test_a_task_may_load_in_peace(resources: Resources, settings: Settings) -> None:
    """F4, F5."""
    assert resources.properties("Service")["HealthCheckGracePeriodSeconds"] > settings.load_timeout_s


def test_a_deploy_adds_before_it_takes_away_and_goes_back_when_it_fails(resources: Resources) -> None:
    deployment = resources.properties("Service")["DeploymentConfiguration"]
    tasks = resources.properties("ScalableTasks")["MinCapacity"]
    assert deployment["MinimumHealthyPercent"] == 100
    assert tasks * deployment["MaximumPercent"] // 100 > tasks  # ECS rounds down
    assert deployment["DeploymentCircuitBreaker"] == {"Enable": True, "Rollback": True}
    assert deployment["Alarms"]["Rollback"] is True
    metric_alarms = resources.of_type("AWS::CloudWatch::Alarm")
    assert {alarm["Ref"] for alarm in deployment["Alarms"]["AlarmNames"]} <= set(metric_alarms)


# Of capacity.


def test_one_task_sits_on_one_instance_over_three_zones(template: dict[str, Any], resources: Resources) -> None:
    service = resources.properties("Service")
    assert service["PlacementConstraints"] == [{"Type": "distinctInstance"}]
    assert service["PlacementStrategies"] == [{"Type": "spread", "Field": "attribute:ecs.availability-zone"}]
    assert template["Outputs"]["ThirdSubnet"]["Value"] == {"Fn::Select": [2, {"Ref": "Subnets"}]}
    for name in ("Balancer", "Instances"):
        assert {"Ref": "Subnets"} in resources.properties(name).values()


def test_there_is_room_for_the_peak_in_any_two_zones_and_for_a_deploy_in_it(template: dict[str, Any]) -> None:
    least, peak, most, instances = (
        template["Parameters"][name]["Default"] for name in ("MinTasks", "PeakTasks", "MaxTasks", "MaxInstances")
    )
    assert least % 3 == peak % 3 == most % 3 == 0  # the same in each zone
    assert least < peak < most
    deploy_percent = template["Resources"]["Service"]["Properties"]["DeploymentConfiguration"]["MaximumPercent"]
    assert instances >= most * deploy_percent // 100


def test_tasks_follow_the_work_and_the_clock(resources: Resources) -> None:
    tracking = resources.properties("ScaleOnWork")["TargetTrackingScalingPolicyConfiguration"]
    assert tracking["CustomizedMetricSpecification"]["MetricName"] == "inflight_per_core"
    assert tracking["CustomizedMetricSpecification"]["Statistic"] == "Average"
    assert tracking["ScaleOutCooldown"] < tracking["ScaleInCooldown"]
    scheduled = resources.properties("ScalableTasks")["ScheduledActions"]
    assert [action["ScalableTargetAction"]["MinCapacity"] for action in scheduled] == [6, 3]


def test_a_deploy_leaves_the_number_of_tasks_to_autoscaling(resources: Resources) -> None:
    """A DesiredCount here would be set at each update of the stack, whatever the peak has come to by then."""
    assert "DesiredCount" not in resources.properties("Service")
    assert resources.properties("ScalableTasks")["MinCapacity"] == 3  # to which a new service is raised


# Of what is allowed.


def statements(resources: Resources) -> list[dict[str, Any]]:
    found = [
        statement
        for role in resources.of_type("AWS::IAM::Role").values()
        for policy in role.get("Policies", [])
        for statement in policy["PolicyDocument"]["Statement"]
    ]
    for policy in resources.of_type("AWS::IAM::RolePolicy").values():
        found += policy["PolicyDocument"]["Statement"]
    return found


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def test_no_role_may_do_whatever_it_likes(resources: Resources) -> None:
    assert not [role for role in resources.of_type("AWS::IAM::Role").values() if "ManagedPolicyArns" in role]
    for statement in statements(resources):
        actions = as_list(statement["Action"])
        assert not [action for action in actions if "*" in action]
        for resource in as_list(statement["Resource"]):
            if resource == "*":
                assert set(actions) <= WITHOUT_RESOURCE
            elif "*" in json.dumps(resource):
                # Names not known beforehand, under one that is: instances of this cluster, files of the bundles.
                assert re.search(
                    r"(container-instance/\$\{Cluster\}|:s3:::\$\{BundleLocation\})/\*\"", json.dumps(resource)
                )


def test_only_the_search_frontend_comes_in_and_only_through_the_balancer(resources: Resources) -> None:
    sources = {
        name: [rule.get("SourceSecurityGroupId") for rule in group.get("SecurityGroupIngress", [])]
        for name, group in resources.of_type("AWS::EC2::SecurityGroup").items()
    }
    assert sources == {
        "InstanceSecurityGroup": [],
        "BalancerSecurityGroup": [{"Ref": "ClientSecurityGroup"}],
        "TaskSecurityGroup": [{"Ref": "BalancerSecurityGroup"}] * 2,
    }
    assert resources.properties("Balancer")["Scheme"] == "internal"


def test_who_has_the_alarms_may_read_what_the_runbook_says(template: dict[str, Any], resources: Resources) -> None:
    """``/metrics`` and ``/readyz`` of a task, which are read only; nobody may unless a security group is named."""
    assert template["Parameters"]["MonitoringSecurityGroup"]["Default"] == ""
    assert template["Resources"]["MonitoringIngress"]["Condition"] == "HasMonitoring"
    rule = template["Resources"]["MonitoringIngress"]["Properties"]
    assert rule["GroupId"] == {"Ref": "TaskSecurityGroup"}
    assert rule["SourceSecurityGroupId"] == {"Ref": "MonitoringSecurityGroup"}
    assert (rule["FromPort"], rule["ToPort"]) == ({"Ref": "OperationsPort"}, {"Ref": "OperationsPort"})
    assert set(resources.of_type("AWS::EC2::SecurityGroupIngress")) == {"MonitoringIngress"}
    assert "MonitoringSecurityGroup" in sections((ROOT / "deploy" / "README.md").read_text())["Runbook"]


# Of alarms, dashboard and runbook.


@pytest.mark.parametrize(("objective", "good", "budget"), [("Latency", "within_slo", 1), ("Answers", "answered", 0.05)])
@pytest.mark.parametrize(("speed", "spent_percent"), [("Fast", 2), ("Slow", 5), ("Lasting", 10), ("Creeping", 10)])
def test_an_error_budget_is_watched_in_two_windows(
    resources: Resources, objective: str, good: str, budget: float, speed: str, spent_percent: float
) -> None:
    """SRE Workbook, chapter 5: so much of a month's budget is gone in the long window; the short one ends the alarm."""
    name = f"{objective}Burn{speed}"
    windows = {}
    for window in ("Long", "Short"):
        alarm = resources.properties(name + window)
        rate, *stats = alarm["Metrics"]
        expression, values = rate["Expression"]["Fn::Sub"]
        assert expression == "IF(requests > 0, (1 - good / requests) / ${Budget}, 0)"
        assert float(values["Budget"]) * 100 == pytest.approx(budget)
        metrics = {stat["Id"]: stat["MetricStat"] for stat in stats}
        assert {each["Metric"]["MetricName"] for each in metrics.values()} == {good, "requests"}
        assert {each["Stat"] for each in metrics.values()} == {"Sum"}
        (windows[window],) = {each["Period"] for each in metrics.values()}
        assert "AlarmActions" not in alarm
    assert windows["Short"] == windows["Long"] / 12
    hours = windows["Long"] / 3600
    assert resources.properties(f"{name}Long")["Threshold"] * hours / (30 * 24) * 100 == pytest.approx(spent_percent)
    rule = resources.properties(name)["AlarmRule"]["Fn::Sub"]
    assert rule == f'ALARM("${{{name}Long}}") AND ALARM("${{{name}Short}}")'


def test_what_no_task_has_seen_is_an_alarm_too(resources: Resources) -> None:
    """A 502 of the balancer's own is in none of the service's metrics. It is there only when there are any."""
    alarm = resources.properties("BalancerErrors")
    assert (alarm["Namespace"], alarm["MetricName"]) == ("AWS/ApplicationELB", "HTTPCode_ELB_5XX_Count")
    assert alarm["Dimensions"] == [
        {"Name": "LoadBalancer", "Value": {"Fn::GetAtt": ["Balancer", "LoadBalancerFullName"]}}
    ]
    assert (alarm["Statistic"], alarm["Threshold"], alarm["TreatMissingData"]) == ("Sum", 0, "notBreaching")
    # An instance that dies costs what is sent to it until two checks have failed, and the last of that times out later.
    targets = resources.properties("Targets")
    noticed_s = targets["HealthCheckIntervalSeconds"] * targets["UnhealthyThresholdCount"]
    idle_s = int(attributes(resources.properties("Balancer"), "LoadBalancerAttributes")["idle_timeout.timeout_seconds"])
    minutes = math.ceil((noticed_s + idle_s) / alarm["Period"]) + 1
    assert minutes < alarm["DatapointsToAlarm"] < alarm["EvaluationPeriods"]


def test_what_is_not_there_yet_is_not_missed(template: dict[str, Any], resources: Resources) -> None:
    """Nor is it while the first instance of a new service boots: such an alarm is made after that."""
    missing = {name for name, alarm in resources.alarms.items() if alarm.get("TreatMissingData") == "breaching"}
    assert missing == {"CapacityShort", "MetricsMissing"}
    assert {template["Resources"][name].get("DependsOn") for name in missing} == {"ScalableTasks"}


def test_no_alarm_looks_further_back_than_cloudwatch_does(resources: Resources) -> None:
    """PutMetricAlarm: a period is a multiple of a minute, and all of them together are a day at most; a week, where
    one is an hour or longer."""
    looks_back = {}
    for name, alarm in resources.of_type("AWS::CloudWatch::Alarm").items():
        stats = [metric["MetricStat"] for metric in alarm.get("Metrics", []) if "MetricStat" in metric]
        (period,) = {stat["Period"] for stat in stats or [alarm]}
        assert period % 60 == 0
        looks_back[name] = period * alarm["EvaluationPeriods"]
        assert looks_back[name] <= (604_800 if period >= 3600 else 86_400), name
    assert max(looks_back.values()) == 3 * 86_400


def metric_names(value: Any) -> set[str]:
    """Of the service's own namespace, wherever they stand in the template."""
    if isinstance(value, list):
        own = {value[1]} if len(value) > 1 and value[0] == NAMESPACE else set()
        return own.union(*(metric_names(each) for each in value))
    if isinstance(value, dict):
        own = {value["MetricName"]} if value.get("Namespace") == NAMESPACE else set()
        return own.union(*(metric_names(each) for each in value.values()))
    return set()


def dashboard(resources: Resources) -> dict[str, Any]:
    body = resources.properties("Dashboard")["DashboardBody"]["Fn::Sub"]
    parsed: dict[str, Any] = json.loads(re.sub(r"\$\{[^}]+\}", "0", body))
    return parsed


def test_alarms_dashboard_and_scaling_ask_for_metrics_that_there_are(resources: Resources, emitted: set[str]) -> None:
    asked = metric_names(list(resources.alarms.values())) | metric_names(dashboard(resources))
    asked |= metric_names(resources.properties("ScaleOnWork"))
    assert asked <= emitted
    unseen = {name for name in emitted - asked if not name.startswith("share_")}  # which the dashboard searches for
    assert unseen == set()


def test_widgets_of_the_dashboard_lie_beside_each_other(resources: Resources) -> None:
    taken = set()
    for widget in dashboard(resources)["widgets"]:
        columns = range(widget["x"], widget["x"] + widget["width"])
        cells = {(x, y) for x in columns for y in range(widget["y"], widget["y"] + widget["height"])}
        assert max(columns) < 24
        assert not cells & taken
        taken |= cells


def test_each_alarm_that_is_sent_has_its_section_in_the_runbook(resources: Resources) -> None:
    runbook = sections((ROOT / "deploy" / "README.md").read_text())
    sent = {name for name, alarm in resources.alarms.items() if "AlarmActions" in alarm}
    assert len(sent) == 16
    for name in sent:
        text = runbook[name]
        for part in ("**Means.**", "**Look at.**", "**Do.**"):
            assert part in text, f"{name} lacks {part}"
        assert resources.alarms[name]["AlarmName"] == {"Fn::Sub": f"${{AWS::StackName}}-{name}"}


def test_how_long_a_start_takes_is_as_it_was_measured() -> None:
    """Up to the chip, which nobody has measured: there the metrics tell."""
    measured = json.loads((ROOT / "benchmarks" / "results" / "neuron_standin.json").read_text())["start"]
    steps = sections((ROOT / "deploy" / "README.md").read_text())["Sizing"]
    row = next(line for line in steps.splitlines() if "benchmarks.neuron_standin" in line)
    assert f"| {measured['cores']} cores × {measured['buckets']} buckets " in row
    assert f"| {measured['seconds_to_ready']:.0f}; " in row


def test_the_readme_lists_every_metric_and_no_other(emitted: set[str]) -> None:
    table = sections((ROOT / "deploy" / "README.md").read_text())["Metrics"]
    listed = set(re.findall(r"^\| `([a-z_<>]+)` \|", table, flags=re.MULTILINE))
    assert listed == {re.sub("^share_.*", "share_<intent>", name) for name in emitted}
