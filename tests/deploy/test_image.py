"""What the images promise, as far as it can be read off the Dockerfile. ``deploy/image check`` tries a real one."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from app.settings import Settings
from deploy.task_definitions import OPERATIONS_PORT, TRAFFIC_PORT
from tests.deploy.dockerfile import ROOT, Stage, read_stages

STAGES = {stage.name: stage for stage in read_stages()}
TARGETS = ["cpu", "inf2", "inf1"]


@pytest.fixture(params=TARGETS)
def target(request: pytest.FixtureRequest) -> Stage:
    return STAGES[request.param]


def test_cpu_comes_first_and_is_what_a_build_makes_that_names_no_target() -> None:
    stages = read_stages()
    assert [stage.name for stage in stages if stage.name in TARGETS] == TARGETS
    assert (stages[-1].base, stages[-1].instructions) == ("cpu", [])


def test_every_base_from_outside_is_written_out_and_pinned_by_tag() -> None:
    for stage in STAGES.values():
        if stage.base not in STAGES:
            assert re.fullmatch(r"[a-z0-9./-]+:[a-z0-9.-]*\d[a-z0-9.-]*", stage.base), stage.base


def test_the_neuron_bases_are_those_of_the_sdk_that_is_pinned() -> None:
    assert "pytorch-inference-neuronx:2.9.0-neuronx-" in STAGES["inf2"].base
    assert "pytorch-inference-neuron:1.13.1-neuron-py310-" in STAGES["inf1"].base


def test_the_service_is_not_root_and_no_user_has_to_exist_for_it(target: Stage) -> None:
    assert target.only("USER") == "10001:10001"
    names = [name for name, _ in target.instructions]
    assert not {"RUN", "COPY"} & set(names[names.index("USER") :])


def test_the_service_itself_gets_the_signals(target: Stage) -> None:
    assert target.exec_form("ENTRYPOINT") + target.exec_form("CMD") == ["query-intent", "serve"]


def test_health_is_asked_of_the_operations_port_and_without_a_shell(target: Stage) -> None:
    """app.healthcheck asks /healthz, never /readyz."""
    options, _, command = target.only("HEALTHCHECK").partition(" CMD ")
    assert command == '["python", "-m", "app.healthcheck"]'
    assert "--start-period=" in options


def test_both_ports_are_exposed_and_reachable_from_outside(target: Stage) -> None:
    settings = Settings.read({name: value for name, value in target.pairs("ENV").items() if name.endswith("HOST")})
    assert (settings.host, settings.ops_host) == ("0.0.0.0", "0.0.0.0")
    assert target.only("EXPOSE") == f"{settings.port} {settings.ops_port}"
    assert (settings.port, settings.ops_port) == (TRAFFIC_PORT, OPERATIONS_PORT)


def test_an_image_serves_its_own_target_and_never_falls_back_to_another(target: Stage) -> None:
    assert target.pairs("ENV")["QUERY_INTENT_TARGET"] == target.name


def test_nothing_is_written_outside_of_tmp(target: Stage) -> None:
    environment = target.pairs("ENV")
    assert [environment["HOME"], target.all("WORKDIR")[-1]] == ["/tmp", "/tmp"]
    assert environment["PYTHONDONTWRITEBYTECODE"] == "1"


def test_the_labels_say_what_it_is_and_what_it_was_made_from(target: Stage) -> None:
    prefix = "org.opencontainers.image."
    labels = {name.removeprefix(prefix): value for name, value in target.pairs("LABEL").items()}
    assert set(labels) == {"title", "description", "licenses", "base.name", "version", "revision"}
    assert labels["base.name"].removeprefix("docker.io/library/") == target.base


def test_cpu_installs_nothing_on_its_base_and_takes_only_what_was_checked_by_hash() -> None:
    assert STAGES["cpu"].all("RUN") == []
    assert {source for argument in STAGES["cpu"].all("COPY") for source in re.findall(r"--from=(\w+)", argument)} == {
        "dependencies",
        "sbom",
        "service",
    }
    install = STAGES["dependencies"].all("RUN")[0]
    assert "--require-hashes" in install
    assert "--only-binary :all:" in install  # what has to be compiled would need a compiler
    assert (ROOT / "constraints" / "serve-cpu.txt").read_text().count("\ntorch==") == 0


def test_no_index_is_written_into_a_stage_that_installs() -> None:
    for stage in STAGES.values():
        runs = " ".join(stage.all("RUN"))
        assert "://" not in runs.replace("https://$NEURON_PIP_REPO", "")
        if "pip" in runs:
            assert "PIP_INDEX_URL" in stage.all("ARG")


def test_what_is_copied_and_what_is_installed_from_is_there() -> None:
    for stage in STAGES.values():
        sources = _sources(stage)
        assert [source for source in sources if not _is_released(source)] == []
        requirements = re.findall(r" -[rc] (\S+\.txt)", " ".join(stage.all("RUN")))
        assert set(requirements) == {source.rpartition("/")[2] for source in sources if source.endswith(".txt")}


def test_only_what_an_image_is_made_of_is_sent_to_the_build() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    rules = [line for line in lines if not line.startswith("#")]
    assert rules[0] == "*"
    kept = {line.removeprefix("!") for line in rules if line.startswith("!")}
    sources = {source for stage in STAGES.values() for source in _sources(stage)}
    assert kept == {source.partition("/")[0] for source in sources}
    assert "models/checkpoints" in rules


def _is_released(path: str) -> bool:
    """Whether the repository has it, and not this checkout only; where git can't say, whether it is there."""
    git = shutil.which("git") or "false"
    listed = subprocess.run([git, "ls-files", "--", path], cwd=ROOT, capture_output=True)
    return listed.stdout != b"" if listed.returncode == 0 else (ROOT / path).exists()


def _sources(stage: Stage) -> list[str]:
    """What the stage copies out of the repository."""
    return [word for argument in stage.all("COPY") if "--from" not in argument for word in argument.split()[:-1]]
