"""``query-intent compile`` for Inferentia over the stand-in SDK, in processes that see a machine with that chip."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

pytest.importorskip("torch", reason="compiling needs torch")

from app.backends.neuron_artefact import INPUTS
from app.bundle import Bundle
from models.compile import command
from tests.models.compiling.test_torchscript import trace
from tests.neuron import ROOT, NeuronHost, neuron_host
from tests.tiny_models import WORDS, save_checkpoint

__all__ = ["neuron_host"]

# What a machine that compiles for chips doesn't have.
NO_OPENVINO = (
    "import sys; sys.modules.update(dict.fromkeys(['openvino', 'nncf', 'scipy', 'sklearn', 'faker', 'accelerate']))"
)


# Each compiles or loads in several processes that import torch.
pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint, files of queries, and rows compiled on a machine that has no chip."""
    folder = tmp_path_factory.mktemp("compile")
    save_checkpoint(folder / "Tiny")
    pairs = [f"{one} {other}" for kind in WORDS.values() for one in kind for other in kind]
    (folder / "holdout.txt").write_text("\n".join(pairs))
    (folder / "golden.txt").write_text("lamp\nsong\nrefund\ncancel delivery\n")
    built = compile_on(NeuronHost(folder / "chipless", None), options(folder, folder / "bundle", "inf1", "--jobs", "2"))
    (folder / "log").write_text(f"{built.returncode}\n{built.stderr}")
    return folder


def options(workshop: Path, bundle: Path, target: str, *more: str) -> list[str]:
    files = [part for name in ("holdout", "golden") for part in (f"--{name}", str(workshop / f"{name}.txt"))]
    model = ["--checkpoint", str(workshop / "Tiny"), "--bundle", str(bundle), "--target", target]
    return [*model, *files, "--buckets", "16,32", *more]


def take_compiled(workshop: Path) -> list[str]:
    return ["--compiler-workdir", str(workshop / "bundle.compiler")]


def compile_on(host: NeuronHost, arguments: list[str], **env: str) -> subprocess.CompletedProcess[str]:
    program = f"{NO_OPENVINO}; from models.compile import command; command(sys.argv[1:])"
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env=host.env | env,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=350,
        check=False,
    )


def test_a_machine_without_a_chip_compiles_and_writes_nothing(workshop: Path) -> None:
    log = (workshop / "log").read_text()
    assert log.startswith("1\n")
    assert "Traceback" not in log
    assert "[2/2] row" in log
    assert "compiled, but it can't be compared with float32 here, so nothing was written: target inf1:" in log
    assert not (workshop / "bundle").exists()


def test_one_with_a_chip_takes_what_was_compiled_compares_and_writes(
    workshop: Path, tmp_path: Path, neuron_host: Callable[..., NeuronHost]
) -> None:
    host = neuron_host("inf1.xlarge")
    arguments = options(workshop, tmp_path / "bundle", "inf1", *take_compiled(workshop))
    written = compile_on(host, arguments, STANDIN_NEURON_COMPILER="fail")
    assert written.returncode == 0, written.stderr
    assert "row 16: compiled before, taken from" in written.stderr
    assert "against float32 on 192 held-out queries: 100.00% of the labels agree" in written.stderr
    bundle = Bundle(tmp_path / "bundle")
    target = bundle.target("inf1")
    assert sorted(name for name in bundle.manifest.files if name.startswith("inf1/")) == [
        "inf1/row_16.pt",
        "inf1/row_32.pt",
        "inf1/target.json",
    ]
    assert target.engine.keys() == {"torch", "torch-neuron", "neuron-cc"}
    assert (target.precision, target.one_query_a_row, target.buckets) == ("bf16-matmult", False, [16, 32])
    assert target.options["inputs"] == list(INPUTS)
    assert target.options["dtypes"] == dict.fromkeys(INPUTS, "float32")
    assert target.options["pipeline_cores"] == 1
    assert target.options["compiler_args"][:3] == ["--fast-math", "fp32-cast-matmult", "fast-relayout"]
    assert target.options["shapes"]["16"] == {
        "hidden": [1, 16, 64],
        "mask": [1, 1, 16, 16],
        "pool": [5, 16],
        "logits": [5, 3],
    }
    # It took one core, as a service on the same machine would want it to.
    assert [core for core in range(host.cores) if host.counters(core)["completed"]] == [0]


def test_the_other_generation_has_its_own_flags_and_may_have_one_query_a_row(
    workshop: Path, tmp_path: Path, neuron_host: Callable[..., NeuronHost]
) -> None:
    arguments = options(workshop, tmp_path / "bundle", "inf2", "--one-query-a-row", "--auto-cast", "none")
    result = compile_on(neuron_host("inf2.xlarge"), arguments)
    assert result.returncode == 0, result.stderr
    target = Bundle(tmp_path / "bundle").target("inf2")
    assert target.engine.keys() == {"torch", "torch-neuronx", "neuronx-cc"}
    assert (target.precision, target.one_query_a_row) == ("float32", True)
    assert target.options["shapes"]["16"]["pool"] == [1, 16]
    assert target.options["compiler_args"][-2:] == ["--auto-cast", "none"]
    assert target.agreement["largest"] < 1e-5


def test_a_chip_that_answers_wrong_leaves_no_bundle(
    workshop: Path, tmp_path: Path, neuron_host: Callable[..., NeuronHost]
) -> None:
    host = neuron_host("inf1.xlarge")
    host.break_core(0, "garbage")
    result = compile_on(host, options(workshop, tmp_path / "bundle", "inf1", *take_compiled(workshop)))
    assert result.returncode == 1
    assert "nothing written" in result.stderr
    assert not (tmp_path / "bundle").exists()


def test_a_core_that_fails_while_it_is_compared_leaves_no_bundle(
    workshop: Path, tmp_path: Path, neuron_host: Callable[..., NeuronHost]
) -> None:
    host = neuron_host("inf1.xlarge")
    host.break_core(0, "1004")
    result = compile_on(host, options(workshop, tmp_path / "bundle", "inf1", *take_compiled(workshop)))
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    assert "1004" in result.stderr
    assert not (tmp_path / "bundle").exists()


def test_a_machine_without_the_sdk_says_where_to_get_it(workshop: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(command, options(workshop, tmp_path / "bundle", "inf2"))
    assert result.exit_code == 1
    assert "torch-neuronx isn't installed" in result.output
    assert "pip.repos.neuron.amazonaws.com" in result.output
    assert not (tmp_path / "bundle").exists()


@pytest.mark.parametrize(
    ("target", "more", "said"),
    [
        ("inf2", ["--fast-math", "all"], "--fast-math is for --target inf1, not inf2"),
        ("inf2", ["--neuroncore-pipeline-cores", "2"], "--neuroncore-pipeline-cores is for --target inf1, not inf2"),
        ("inf1", ["--auto-cast", "all"], "--auto-cast is for --target inf2, not inf1"),
        ("torch", ["--jobs", "2"], "--jobs is for --target inf1 or inf2, not torch"),
        ("torch", ["--one-query-a-row"], "--one-query-a-row is for --target inf1 or inf2, not torch"),
        ("inf1", ["--fast-math", "all,fp32-cast-all"], "all, fp32-cast-all exclude each other"),
        ("inf1", ["--compiler-timeout", "0"], "--compiler-timeout"),
        ("inf1", ["--jobs", "0"], "--jobs"),
        ("cpu", [], "--target cpu needs --calibration: queries to learn from"),
        ("fallback", [], "--target fallback needs --calibration: queries to learn from"),
    ],
)
def test_options_that_make_no_order_are_refused(
    workshop: Path, tmp_path: Path, target: str, more: list[str], said: str
) -> None:
    result = CliRunner().invoke(command, options(workshop, tmp_path / "bundle", target, *more))
    assert result.exit_code == 2
    assert said in result.output


@pytest.mark.filterwarnings("ignore")
def test_a_traced_checkpoint_is_the_same_model_as_its_folder(
    workshop: Path, tmp_path: Path, neuron_host: Callable[..., NeuronHost]
) -> None:
    """To the bit: what was compiled of the one is taken for the other."""
    arguments = options(workshop, tmp_path / "bundle", "inf1", *take_compiled(workshop))
    arguments[1] = str(trace(tmp_path / "Tiny") / "cpu_model.pt")
    result = compile_on(neuron_host("inf1.xlarge"), arguments, STANDIN_NEURON_COMPILER="fail")
    assert result.returncode == 0, result.stderr
    assert Bundle(tmp_path / "bundle").name == "tiny@1"
