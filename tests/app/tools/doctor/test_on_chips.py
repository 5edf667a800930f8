"""The whole examination over the stand-in SDK: real processes, on one Inferentia 1 chip of four cores."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from app.bundle import Bundle, write_manifest
from tests.neuron import PLACEHOLDER, ROOT, NeuronHost, make_neuron_bundle

pytest.importorskip("torch", reason="the stand-in SDK computes with torch")

HOLD_A_CORE = """
import sys, torch, torch_neuron
torch.jit.load(sys.argv[1])
print("loaded", flush=True)
sys.stdin.read()
"""


class Examined(NamedTuple):
    code: int
    stdout: str
    checks: dict[str, dict[str, Any]]

    def failed(self) -> list[str]:
        return [name for name, check in self.checks.items() if check["verdict"] == "failed"]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_neuron_bundle(tmp_path_factory.mktemp("bundles") / "tiny")


@pytest.fixture
def examine(bundle: Path, tmp_path: Path) -> Callable[..., Examined]:
    def run(host: NeuronHost, *arguments: str, load: bool = False, **environ: str) -> Examined:
        report = tmp_path / "report.json"
        seconds = "1" if load else "0"
        command = [sys.executable, "-m", "app.cli", "doctor", f"--bundle={bundle}", f"--json={report}"]
        # The machine of the tests may be busy with others of them.
        environ = host.env | {"QUERY_INTENT_SLO_MS": "1000"} | environ
        done = subprocess.run(
            [*command, f"--seconds={seconds}", "--rate=50", *arguments],
            env=environ,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )
        assert report.exists(), done.stderr
        checks = {check["name"]: check for check in json.loads(report.read_text())["checks"]}
        return Examined(done.returncode, done.stdout, checks)

    return run


def test_from_the_chip_to_a_service_under_load(
    neuron_host: Callable[..., NeuronHost], examine: Callable[..., Examined]
) -> None:
    found = examine(neuron_host("inf1.xlarge"), "--cores=4", load=True)
    assert found.failed() == []
    assert found.code == 0, found.stdout
    assert "WELL: target inf1" in found.stdout  # which nobody asked for: the chips say it
    assert found.checks["tiny compile"]["verdict"] == "ok"
    assert found.checks["tiny compile"]["data"]["difference"] > 0  # it was the chip that computed, in bfloat16
    assert list(found.checks["latency"]["data"]["rows_ms"]) == ["core 0", "core 1", "core 2", "core 3"]
    assert found.checks["after the load"]["detail"].startswith("4 of 4 replicas ready")


def test_a_core_that_computes_wrongly_is_named_and_the_others_are_still_tried(
    neuron_host: Callable[..., NeuronHost], examine: Callable[..., Examined]
) -> None:
    host = neuron_host("inf1.xlarge")
    host.break_core(2, "garbage")
    found = examine(host)
    assert found.code == 1
    assert found.failed() == ["canary"]
    assert list(found.checks["canary"]["data"]["errors"]) == ["core 2"]
    assert "3 of 4 replicas" in found.checks["canary"]["detail"]


def test_whoever_has_a_core_is_named_and_the_cpu_is_examined_instead(
    neuron_host: Callable[..., NeuronHost], examine: Callable[..., Examined], bundle: Path
) -> None:
    host = neuron_host("inf1.xlarge")
    command = [sys.executable, "-c", HOLD_A_CORE, str(bundle / "inf1" / "row_16.pt")]
    with subprocess.Popen(command, env=host.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout
        assert holder.stdin
        assert holder.stdout.readline() == b"loaded\n"
        found = examine(host)
        holder.stdin.close()
    assert found.code == 1
    assert f"pid {holder.pid}" in found.checks["neuron cores"]["detail"]
    assert found.checks["target"]["detail"].endswith("target cpu instead")


def test_a_target_without_its_chip_says_what_is_missing(
    neuron_host: Callable[..., NeuronHost], examine: Callable[..., Examined]
) -> None:
    found = examine(neuron_host(None), "--target=inf1")
    assert found.code == 1
    assert {"neuron devices", "neuron driver"} <= set(found.failed())
    assert found.checks["target"]["detail"].endswith("target cpu instead")


def test_pypis_empty_package_is_told_from_the_sdk(
    neuron_host: Callable[..., NeuronHost], examine: Callable[..., Examined]
) -> None:
    host = neuron_host("inf1.xlarge")
    found = examine(host, PYTHONPATH=os.pathsep.join([str(PLACEHOLDER), host.env["PYTHONPATH"]]))
    assert "neuron sdk" in found.failed()
    assert "placeholder" in found.checks["neuron sdk"]["detail"]
    assert "pip.repos.neuron.amazonaws.com" in found.checks["neuron sdk"]["remedy"]


def test_a_tiny_model_that_is_left_to_the_cpu_is_no_compiler_that_works(
    neuron_host: Callable[..., NeuronHost], examine: Callable[..., Examined]
) -> None:
    found = examine(neuron_host("inf1.xlarge", compiler="fail"))
    assert found.failed() == ["tiny compile"]
    assert "nothing in its graph runs on a NeuronCore" in found.checks["tiny compile"]["detail"]


def test_fewer_cores_than_a_copy_of_the_model_takes_are_said(
    neuron_host: Callable[..., NeuronHost], examine: Callable[..., Examined], bundle: Path, tmp_path: Path
) -> None:
    pipeline = shutil.copytree(bundle, tmp_path / "pipeline")
    target = json.loads((pipeline / "inf1" / "target.json").read_text())
    target["options"]["pipeline_cores"] = 4
    (pipeline / "inf1" / "target.json").write_text(json.dumps(target))
    write_manifest(pipeline, Bundle(bundle).manifest)
    found = examine(neuron_host("inf1.xlarge"), f"--bundle={pipeline}", NEURON_RT_VISIBLE_CORES="0-2")
    assert found.failed() == ["canary"]
    assert "a copy of the model takes 4 cores, there are 3 to use: 0-2" in found.checks["canary"]["detail"]
