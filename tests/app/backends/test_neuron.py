"""The adapter for Inferentia over the stand-in SDK, in processes of their own as a worker is one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the Neuron SDKs are extensions of torch")

from app.backends.neuron_artefact import Artefact, check_graph  # noqa: E402
from app.backends.neuron_model import NeuronModel  # noqa: E402
from app.bundle import TargetManifest  # noqa: E402
from app.errors import BackendError, CoreFailed  # noqa: E402
from app.neuron_sdk import SDKS  # noqa: E402
from tests.neuron import BUCKETS, PLACEHOLDER, NeuronHost, make_neuron_bundle  # noqa: E402

Make = Callable[..., NeuronHost]

# Loads replicas on threads of their own, all at once as a worker does, and runs a row of every bucket on each.
ROWS = """
import json, sys, threading
import numpy as np, torch
from pathlib import Path
from app.backends import make_backend
from app.bundle import Bundle
from app.packing import max_segments

path, name, replicas, span = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
target = Bundle(path).target(name)
backend = make_backend(path / name, target, labels=9, null_ms=0, span=span)
worst, failures, threads_each = [], [], set()

def replica(core):
    try:
        model = backend.load(core)
        threads_each.add(torch.get_num_threads())  # a setting of the thread that loads, and then runs, the model
        for tokens in target.buckets:
            hidden = np.random.default_rng(core).normal(size=(span, tokens, 16)).astype(np.float32)
            mask = np.zeros((span, 1, tokens, tokens), np.float32)
            segments = span if target.one_query_a_row else max_segments(tokens)
            pool = np.full((segments, tokens), 1 / 32, np.float32)
            logits = model.forward(hidden, mask, pool)
            rows = hidden[np.arange(segments) % span] if span > 1 else hidden[[0] * segments]
            expected = (pool[:, None, :] @ rows[:, :, :9])[:, 0]
            assert logits.dtype == np.float32 and logits.shape == expected.shape, logits.shape
            worst.append(float(np.abs(logits - expected).max()))
        model.close()
    except Exception as error:
        failures.append(f"{type(error).__name__}: {error}")

threads = [threading.Thread(target=replica, args=(core,)) for core in range(replicas)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(json.dumps({"failures": failures, "worst": max(worst, default=None), "rows": len(worst),
                  "threads": sorted(threads_each)}))
"""

# Opens a whole engine: canary and warm-up included.
ENGINE = """
import asyncio, sys
from pathlib import Path
from app.bundle import Bundle
from app.engine import Engine

async def main():
    engine = Engine(Bundle(Path(sys.argv[1])), sys.argv[2], replicas=1, slo_s=0.01, queue_tokens=1000)
    try:
        await engine.open()
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
    engine.close()

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    made: dict[tuple[str, bool], Path] = {}

    def bundle(target: str, *, one_query_a_row: bool = False) -> Path:
        key = target, one_query_a_row
        if key not in made:
            path = tmp_path_factory.mktemp("neuron") / "tiny"
            made[key] = make_neuron_bundle(path, target=target, one_query_a_row=one_query_a_row)
        return made[key]

    return bundle


def run_rows(host: NeuronHost, bundle: Path, target: str, *, replicas: int, span: int = 1, **env: str) -> Any:
    done = host.python(ROWS, str(bundle), target, str(replicas), str(span), **env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


class TestReplicas:
    @pytest.mark.parametrize(("target", "instance"), [("inf1", "inf1.6xlarge"), ("inf2", "inf2.24xlarge")])
    def test_each_has_a_core_of_its_own_on_which_every_bucket_runs(
        self, neuron_host: Make, bundles: Callable[..., Path], target: str, instance: str
    ) -> None:
        host = neuron_host(instance)
        report = run_rows(host, bundles(target), target, replicas=4, NEURON_RT_VISIBLE_CORES="4-7")
        assert report["failures"] == []
        assert report["rows"] == 4 * len(BUCKETS)
        assert report["worst"] < 0.05  # bf16
        assert report["threads"] == [1]
        for core in range(4, 8):
            assert host.counters(core)["completed"] == len(BUCKETS)
            assert host.counters(core)["models"] == 0  # unloaded
        assert host.counters(0).get("completed", 0) == 0

    def test_a_load_for_which_memory_is_short_is_tried_once_more(
        self, neuron_host: Make, bundles: Callable[..., Path]
    ) -> None:
        host = neuron_host("inf1.xlarge")
        host.break_core(0, "load:4*1")
        assert run_rows(host, bundles("inf1"), "inf1", replicas=1)["failures"] == []

    def test_one_that_can_not_be_loaded_names_core_and_remedy(
        self, neuron_host: Make, bundles: Callable[..., Path]
    ) -> None:
        host = neuron_host("inf1.xlarge")
        host.break_core(2, "load:4")
        host.break_core(3, "load:6")
        report = run_rows(host, bundles("inf1"), "inf1", replicas=2, NEURON_RT_VISIBLE_CORES="2-3")
        memory, hardware = sorted(report["failures"])
        at = "BackendError: target inf1: NeuronCore {}: row_16.pt can't be loaded, status {}"
        assert memory.startswith(at.format(2, "4 (NRT_RESOURCE): "))
        assert "serve fewer buckets" in memory
        assert hardware.startswith(at.format(3, "6 (NRT_HW_ERROR): "))
        assert "REPLACE THIS HOST" in hardware

    def test_cores_of_another_process_are_named_with_it(self, neuron_host: Make, bundles: Callable[..., Path]) -> None:
        host = neuron_host("inf1.xlarge")
        row = str(bundles("inf1") / "inf1" / "row_16.pt")
        load = "import sys, torch, torch_neuron; m = torch.jit.load(sys.argv[1])"
        code = f"{load}; print('has it', flush=True); sys.stdin.read()"
        # In a session of its own, under a shell: no sibling of the process that wants the cores.
        command = ["sh", "-c", '"$0" -c "$1" "$2"; :', sys.executable, code, row]
        with subprocess.Popen(command, env=host.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
            assert other.stdout
            assert other.stdin
            assert other.stdout.readline() == "has it\n"
            report = run_rows(host, bundles("inf1"), "inf1", replicas=1, NEURON_RT_VISIBLE_CORES="1")
            (owner,) = set(host.owners().values())
            other.stdin.close()
        (failure,) = report["failures"]
        assert f"NeuronCore 1 can't be opened: another process owns them: pid {owner} (" in failure
        assert "end it, or set NEURON_RT_VISIBLE_CORES" in failure

    def test_a_machine_without_devices_is_told_what_it_lacks(
        self, neuron_host: Make, bundles: Callable[..., Path]
    ) -> None:
        (failure,) = run_rows(neuron_host(None), bundles("inf1"), "inf1", replicas=1)["failures"]
        assert "can't be opened: there is no Neuron device; on the host load the driver (aws-neuronx-dkms)" in failure

    def test_pypis_placeholder_is_not_taken_for_the_sdk(self, neuron_host: Make, bundles: Callable[..., Path]) -> None:
        host = neuron_host("inf1.xlarge")
        path = f"{PLACEHOLDER}:{host.env['PYTHONPATH']}"
        (failure,) = run_rows(host, bundles("inf1"), "inf1", replicas=1, PYTHONPATH=path)["failures"]
        assert "PyPI's empty placeholder" in failure

    @pytest.mark.parametrize("raised", ["OSError('libnrt.so.1: no such file')", "TypeError('Descriptors cannot be')"])
    def test_an_sdk_that_can_not_be_imported_says_what_to_install(
        self, neuron_host: Make, bundles: Callable[..., Path], tmp_path: Path, raised: str
    ) -> None:
        (tmp_path / "torch_neuron.py").write_text(f"raise {raised}")
        host = neuron_host("inf1.xlarge")
        path = f"{tmp_path}:{host.env['PYTHONPATH']}"
        (failure,) = run_rows(host, bundles("inf1"), "inf1", replicas=1, PYTHONPATH=path)["failures"]
        assert failure.startswith("BackendError: target inf1: torch-neuron is installed and can't be imported: ")
        assert "; the " in failure


class TestCanary:
    """What a device that computes something else looks like: right shapes, finite numbers, no error."""

    def test_it_never_takes_a_row(self, neuron_host: Make, bundles: Callable[..., Path]) -> None:
        host = neuron_host("inf1.xlarge")
        host.break_core(0, "garbage")
        done = host.python(ENGINE, str(bundles("inf1")), "inf1", NEURON_RT_VISIBLE_CORES="0")
        assert done.stdout.startswith("BackendError: replica 0: golden query "), done.stdout + done.stderr

    def test_neither_does_an_old_build_that_answers_without_a_device(
        self, neuron_host: Make, bundles: Callable[..., Path]
    ) -> None:
        host = neuron_host(None, absent="constants")
        done = host.python(ENGINE, str(bundles("inf1")), "inf1", NEURON_RT_VISIBLE_CORES="0")
        assert done.stdout.startswith("BackendError: "), done.stdout + done.stderr

    @pytest.mark.parametrize(("code", "said"), [(2, "; compile the target again"), (1003, "status=1003 message=")])
    def test_a_row_that_the_runtime_refuses_is_said_in_a_sentence(
        self, neuron_host: Make, bundles: Callable[..., Path], code: int, said: str
    ) -> None:
        host = neuron_host("inf1.xlarge")
        host.break_core(1, str(code))
        done = host.python(ENGINE, str(bundles("inf1")), "inf1", NEURON_RT_VISIBLE_CORES="1")
        assert done.stdout.startswith(f"BackendError: replica 0: NeuronCore 1: status {code} ("), done.stdout
        assert said in done.stdout
        assert len(done.stdout.splitlines()) == 1

    def test_a_well_one_does(self, neuron_host: Make, bundles: Callable[..., Path]) -> None:
        done = neuron_host("inf1.xlarge").python(ENGINE, str(bundles("inf1")), "inf1", NEURON_RT_VISIBLE_CORES="0")
        assert (done.returncode, done.stdout) == (0, ""), done.stderr


class TestDataParallel:
    @pytest.mark.parametrize("split", ["each", "first"])
    def test_one_replica_runs_a_query_on_each_core_at_once(
        self, neuron_host: Make, bundles: Callable[..., Path], split: str
    ) -> None:
        """Whichever of its inputs the SDK goes by when it splits a batch."""
        host = neuron_host("inf1.xlarge", split=split)
        report = run_rows(host, bundles("inf1", one_query_a_row=True), "inf1", replicas=1, span=4)
        assert report["failures"] == []
        assert report["worst"] < 0.05
        assert [host.counters(core)["completed"] for core in range(4)] == [len(BUCKETS)] * 4

    def test_rows_of_several_queries_can_not_be_split(self, bundles: Callable[..., Path]) -> None:
        from app.backends import make_backend
        from app.bundle import Bundle

        path = bundles("inf1")
        with pytest.raises(BackendError, match=r"needs rows of one query .compile with --one-query-a-row"):
            make_backend(path / "inf1", Bundle(path).target("inf1"), labels=9, null_ms=0, span=4)


def manifest(**changes: Any) -> TargetManifest:
    fields = {"target": "inf1", "engine": {"torch-neuron": "1"}, "precision": "bf16", "buckets": [8], "tolerance": 0.1}
    return TargetManifest.model_validate(fields | changes)


class TestArtefact:
    @pytest.mark.parametrize("changes", [{"target": "inf2"}, {"engine": {"torch-neuronx": "2.9"}}])
    def test_one_of_the_other_generation_is_refused_in_a_plain_sentence(self, changes: dict[str, Any]) -> None:
        message = (
            "target inf1: b was compiled for Inferentia 2, and Inferentia 1 can't run it; "
            "compile the checkpoint again with: query-intent compile --target inf1"
        )
        with pytest.raises(BackendError) as refusal:
            Artefact.read(Path("b"), manifest(**changes), SDKS["inf1"])
        assert str(refusal.value) == message

    @pytest.mark.parametrize(
        "options",
        [
            {"inputs": ["hidden", "mask"]},
            {"inputs": ["hidden", "mask", "ids"]},
            {"dtypes": {"pool": "int64"}},
            {"pipeline_cores": 0},
            {"pipeline_cores": "four"},
        ],
    )
    def test_another_contract_than_the_services_is_refused(self, options: dict[str, Any]) -> None:
        with pytest.raises(BackendError, match=next(iter(options))):
            Artefact.read(Path("b"), manifest(options=options), SDKS["inf1"])

    def test_a_graph_without_a_neuron_op_is_a_fallback_to_the_cpu(self) -> None:
        class Module:
            graph = "%6 : Tensor = aten::linear(%5, %w, %b)"

        with pytest.raises(BackendError, match=r"row_8\.pt: nothing in its graph runs on a NeuronCore"):
            check_graph(Module(), Path("row_8.pt"))

    def test_neither_may_a_part_of_it_be_left_to_the_cpu(self) -> None:
        class Module:
            graph = "%5 : Tensor = neuron::forward_v2_1(%3, %4)\n%6 : Tensor = aten::linear(%5, %w, %b)"

        with pytest.raises(BackendError, match=r"a part of its graph runs on the CPU \(aten::linear\)"):
            check_graph(Module(), Path("row_8.pt"))
        Module.graph = "%5 : Tensor = aten::to(%3, %4)\n%6 : Tensor = neuron::forward_v2_1(%5, %4)"
        check_graph(Module(), Path("row_8.pt"))

    @pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
    def test_what_modules_inside_it_do_counts(self) -> None:
        """A trace calls each by name, and whether an SDK has them inlined is nowhere documented."""
        inside = torch.nn.Sequential(torch.nn.Linear(4, 4))
        module = torch.jit.trace(torch.nn.Sequential(inside), torch.ones(1, 4))
        assert "aten::linear" not in str(module.graph)
        inlined = str(module.inlined_graph)
        on_chip = SimpleNamespace(
            graph=module.graph, inlined_graph=inlined.replace("aten::linear", "neuron::forward_1")
        )
        check_graph(on_chip, Path("row_8.pt"))
        partly = SimpleNamespace(graph=module.graph, inlined_graph=f"neuron::forward_1 {inlined}")
        with pytest.raises(BackendError, match=r"a part of its graph runs on the CPU \(aten::linear\)"):
            check_graph(partly, Path("row_8.pt"))


class TestModel:
    ROW = (np.ones((1, 8, 4), np.float32), np.zeros((1, 1, 8, 8), np.float32), np.ones((2, 8), np.float32))

    def model(self, module: Callable[..., Any], **options: Any) -> NeuronModel:
        artefact = Artefact.read(Path("b"), manifest(options=options), SDKS["inf1"])
        return NeuronModel({8: module}, artefact, torch=torch, place="NeuronCore 6")

    def test_inputs_come_in_the_order_and_dtypes_of_the_manifest(self) -> None:
        seen: list[tuple[tuple[int, ...], str]] = []

        def module(*inputs: Any) -> Any:
            seen.extend((tuple(each.shape), str(each.dtype)) for each in inputs)
            return torch.zeros(2, 3, dtype=torch.bfloat16)

        logits = self.model(module, inputs=["pool", "hidden", "mask"], dtypes={"pool": "bfloat16"}).forward(*self.ROW)
        assert seen == [((2, 8), "torch.bfloat16"), ((1, 8, 4), "torch.float32"), ((1, 1, 8, 8), "torch.float32")]
        assert (logits.shape, logits.dtype) == ((2, 3), np.float32)

    def test_a_tuple_of_one_is_taken_apart(self) -> None:
        assert self.model(lambda *_: (torch.ones(2, 3),)).forward(*self.ROW).shape == (2, 3)

    def test_a_failing_core_is_told_from_a_failing_query(self) -> None:
        def raising(text: str) -> Callable[..., Any]:
            def module(*_: Any) -> Any:
                raise RuntimeError(text)

            return module

        with pytest.raises(CoreFailed, match="NeuronCore 6: status 5"):
            self.model(raising("Failed to execute the model status=5 message=Timeout Exceeded")).forward(*self.ROW)
        with pytest.raises(BackendError, match=r"NeuronCore 6: status 1006 \(NRT_EXEC_OOB\): .* \(.*message=OOB\)"):
            self.model(raising("Failed to execute the model status=1006 message=OOB")).forward(*self.ROW)
