"""A machine with Neuron cores for tests: processes started with its environment find the stand-in SDK and its devices.

    def test_…(neuron_host: Callable[..., NeuronHost]) -> None:
        host = neuron_host("inf1.6xlarge", row_ms="32:3.0,64:5.2")
        subprocess.run([…], env=host.env)
        host.break_core(3, "1004")
        assert host.owners() == {0: …}

``tests/neuron_sdk/neuron_standin/settings.py`` has all that can be set, ``faults.py`` what can break.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

import pytest

from app.bundle import Bundle, TargetManifest, write_manifest
from app.packing import max_segments
from tests.tiny_bundle import EMBEDDING_SIZE, make_tiny_bundle

ROOT = Path(__file__).parents[1]
SDK = Path(__file__).with_name("neuron_sdk")
PLACEHOLDER = SDK / "placeholder"  # torch-neuron 1.0 as PyPI has it: put it before SDK
INPUTS = ("hidden", "mask", "pool")
BUCKETS = (16, 32)

# What a chip would compute for the null model of the tiny bundle, traced for each bucket.
_COMPILE = """
import json, sys, torch
order = json.loads(sys.argv[1])
sdk = __import__({"inf1": "torch_neuron", "inf2": "torch_neuronx"}[order["target"]])
class Null(torch.nn.Module):
    def forward(self, hidden, mask, pool):
        # The padding's mask is read as well, so that all three inputs are the graph's.
        return (torch.matmul(pool, hidden[0, :, : order["labels"]]) + 0 * mask[0, 0, 0, 0],)
for tokens, segments in order["rows"]:
    example = (torch.zeros(1, tokens, order["size"]), torch.zeros(1, 1, tokens, tokens), torch.zeros(segments, tokens))
    module = sdk.trace(Null().eval(), example, compiler_args=order["compiler_args"])
    assert "neuron::forward" in str(module.graph)
    torch.jit.save(module, f"{order['folder']}/row_{tokens}.pt")
"""


class NeuronHost:
    """``settings`` are STANDIN_NEURON_… without the prefix, in small letters. ``None``: no devices."""

    def __init__(self, folder: Path, instance: str | None = "inf1.xlarge", **settings: object) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.devices = folder / "dev"  # stands for /dev
        self.devices.mkdir(parents=True)
        chosen = {"state": self.state, "instance": instance or "none"} | settings
        own = {f"STANDIN_NEURON_{name.upper()}": str(value) for name, value in chosen.items()}
        foreign = {name: value for name, value in os.environ.items() if "NEURON" not in name}
        self.env = foreign | own
        self.env["PYTHONPATH"] = os.pathsep.join([str(SDK), str(ROOT)])
        self.env["PATH"] = os.pathsep.join([str(SDK / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
        machine = _standin("settings").Settings(instance or "none", self.state, {}, 0, 0, 0)
        self.generation, self.cores = machine.generation, machine.cores
        for device in range(machine.devices):
            (self.devices / f"neuron{device}").touch()

    def python(self, code: str, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run ``code`` in a process of its own, to its end."""
        command = [sys.executable, "-c", code, *arguments]
        return subprocess.run(
            command, env=self.env | env, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False
        )

    def break_core(self, core: int, what: str) -> None:
        """From now on, in whichever process has it: "1004", "1004*2", "5", "load:4", "garbage", "hang", "slow:3"."""
        _standin("faults").set_fault(self.state, core, what)

    def mend_core(self, core: int) -> None:
        _standin("faults").set_fault(self.state, core, None)

    def owners(self) -> dict[int, int]:
        """Core -> process, of the cores that a process has."""
        owner = _standin("reservation").owner
        found = {core: owner(self.state, core) for core in range(self.cores)}
        return {core: pid for core, pid in found.items() if pid is not None}

    def counters(self, core: int) -> dict[str, int]:
        """Of the process that had the core last: ``completed``, ``busy_ns``, ``models``, ``memory_bytes`` …"""
        counters: dict[str, int] = _standin("counters").read_counters(self.state, core)
        return counters


def make_neuron_bundle(
    path: Path, *, target: str = "inf1", buckets: Sequence[int] = BUCKETS, one_query_a_row: bool = False
) -> Path:
    """The tiny bundle with a target that the stand-in compiled; it answers as the null model does, rounded to bf16."""
    make_tiny_bundle(path)
    folder = path / target
    folder.mkdir()
    arguments = ["--fast-math", "all"] if target == "inf1" else ["--auto-cast", "all", "--auto-cast-type", "bf16"]
    bundle = Bundle(path)
    order = {
        "target": target,
        "labels": len(bundle.manifest.labels),
        "size": EMBEDDING_SIZE,
        "rows": [(tokens, 1 if one_query_a_row else max_segments(tokens)) for tokens in buckets],
        "compiler_args": arguments,
        "folder": str(folder),
    }
    env = os.environ | {"PYTHONPATH": str(SDK)}
    subprocess.run([sys.executable, "-c", _COMPILE, json.dumps(order)], env=env, check=True, timeout=100)
    engines = {
        "inf1": {"torch": "1.13.1", "torch-neuron": "1.13.1.2.11.13.0", "neuron-cc": "1.24.0.0"},
        "inf2": {"torch": "2.9.0", "torch-neuronx": "2.9.0.2.15.32035", "neuronx-cc": "2.24.5133.0"},
    }
    manifest = TargetManifest(
        target=target,
        engine=engines[target],
        precision="bf16",
        buckets=list(buckets),
        one_query_a_row=one_query_a_row,
        tolerance=0.02,
        options={
            "inputs": list(INPUTS),
            "dtypes": dict.fromkeys(INPUTS, "float32"),
            "compiler_args": arguments,
            "pipeline_cores": 1,
        },
    )
    (folder / "target.json").write_text(manifest.model_dump_json(), encoding="utf-8")
    write_manifest(path, bundle.manifest)
    return path


@pytest.fixture
def neuron_host(tmp_path: Path) -> Callable[..., NeuronHost]:
    def make(instance: str | None = "inf1.xlarge", **settings: object) -> NeuronHost:
        number = len(list(tmp_path.glob("host-*")))
        return NeuronHost(tmp_path / f"host-{number}", instance, **settings)

    return make


def _standin(name: str) -> ModuleType:
    """A module of the stand-in that needs no torch. The folder isn't on the tests' own path, as no SDK is."""
    with contextlib.suppress(ImportError):
        return importlib.import_module(f"neuron_standin.{name}")
    sys.path.insert(0, str(SDK))
    try:
        return importlib.import_module(f"neuron_standin.{name}")
    finally:
        sys.path.remove(str(SDK))
