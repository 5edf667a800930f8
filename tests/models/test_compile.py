"""``query-intent compile`` on tiny models: both targets made by the real engines, or refused with nothing written."""

from __future__ import annotations

import json
import logging
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

pytest.importorskip("torch", reason="compiling needs torch")
pytest.importorskip("nncf", reason="the cpu target needs NNCF")

from safetensors.torch import load_file, save_file

from app.bundle import Bundle, Manifest
from app.fallback import Fallback
from app.golden import GoldenCheck
from app.packing import RowBuffers
from app.ranking import Ranker
from app.tokenization import Tokenizer
from models.compile import command
from models.compiling.queries import read_queries
from models.compiling.student import teach
from models.compiling.targets import cpu
from models.compiling.targets import torch as torch_target
from models.evaluate import command as evaluate_command
from tests.tiny_models import LABELS, WORDS, save_checkpoint

BACKENDS = {"cpu": cpu.backend, "torch": torch_target.backend}
BUCKETS = [3, 8, 16, 32]


def phrases(seed: int, count: int) -> list[str]:
    """One word or two of one kind."""
    random = np.random.default_rng(seed)
    kinds = [list(WORDS.values())[index % len(WORDS)] for index in range(count)]
    return [" ".join(random.choice(kind, size=random.integers(1, 3), replace=False)) for kind in kinds]


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint and the files of queries that go with it."""
    folder = tmp_path_factory.mktemp("compile")
    save_checkpoint(folder / "Tiny")
    words = [word for words in WORDS.values() for word in words]
    (folder / "calibration.txt").write_text("\n".join(words + phrases(1, 120)))
    (folder / "holdout.txt").write_text("\n".join(phrases(2, 400)))  # but for those that calibration has
    (folder / "golden.txt").write_text("lamp\nsong\nrefund\ncancel delivery\n")
    return folder


def run(workshop: Path, bundle: Path, target: str = "torch", *options: str, **files: str) -> Result:
    """``torch`` unless the test is about quantisation: it is made in a second."""
    arguments = {"calibration": "calibration.txt", "holdout": "holdout.txt", "golden": "golden.txt"} | files
    paths = [part for name, file in arguments.items() for part in (f"--{name}", str(workshop / file))]
    model = ["--checkpoint", str(workshop / "Tiny"), "--bundle", str(bundle), "--target", target]
    return CliRunner().invoke(command, [*model, *paths, "--buckets", ",".join(map(str, BUCKETS)), *options])


@pytest.fixture(scope="module")
def compiled(workshop: Path) -> Path:
    """A bundle with both targets."""
    for target in BACKENDS:
        result = run(workshop, workshop / "bundle", target)
        assert result.exit_code == 0, result.output
    return workshop / "bundle"


class Served:
    """A target as the service runs it."""

    def __init__(self, path: Path, name: str) -> None:
        bundle = Bundle(path)
        self.manifest, self.target = bundle.manifest, bundle.target(name)
        self.embeddings = bundle.embeddings()
        self.model = BACKENDS[name](path / name, self.target).load(0)
        self.ranker = Ranker(self.manifest.labels, temperature=self.manifest.temperature)
        self.tokenizer = Tokenizer(
            path / "tokenizer.json", max_tokens=self.manifest.max_tokens, vocabulary=len(self.embeddings.word)
        )

    def forward(self, tokens: int, queries: Sequence[Any]) -> Any:
        row = RowBuffers(tokens, self.embeddings, pooling=self.manifest.pooling)
        row.fill(queries)
        return self.model.forward(row.hidden, row.mask, row.pool)[: len(queries)]

    def answer(self, texts: Sequence[str], tokens: int) -> Any:
        return self.ranker.probabilities(self.forward(tokens, [self.tokenizer.encode(text).ids for text in texts]))


@pytest.fixture(scope="module", params=list(BACKENDS))
def served(request: pytest.FixtureRequest, compiled: Path) -> Served:
    return Served(compiled, request.param)


def test_bundle_holds_what_serving_needs(compiled: Path) -> None:
    bundle = Bundle(compiled)
    assert bundle.name == "tiny@1"
    assert bundle.targets == ["cpu", "torch"]
    assert bundle.manifest.architecture == "bert"
    assert [label.name for label in bundle.manifest.labels] == LABELS
    made = {"cpu": ["model.bin", "model.xml", "target.json"], "torch": ["encoder.pt2", "target.json"]}
    paths = {f"{target}/{file}" for target, files in made.items() for file in files}
    assert bundle.manifest.files.keys() == paths | {"embeddings.safetensors", "tokenizer.json"}
    assert all((compiled / name).stat().st_mode & 0o444 == 0o444 for name in bundle.manifest.files)


def test_target_says_how_it_was_made_and_how_well_it_agrees(compiled: Path) -> None:
    target = Bundle(compiled).target("cpu")
    assert target.precision == "int8"
    assert target.engine.keys() == {"openvino", "nncf", "torch"}
    assert target.agreement["labels"] >= 0.99
    assert target.tolerance >= 0.05
    assert Bundle(compiled).target("torch").tolerance == 1e-4


def test_quantising_silences_nncf_and_nobody_else(compiled: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A handler may hang on several loggers; NNCF's own means would have set its level for all of them."""
    for name in ("nncf", "app"):
        logging.getLogger(name).warning("from %s", name)
    assert [record.message for record in caplog.records] == ["from app"]


def test_golden_queries_are_answered_in_every_bucket(served: Served) -> None:
    check = GoldenCheck(
        served.manifest.golden,
        tokenizer=served.tokenizer,
        ranker=served.ranker,
        max_tokens=served.manifest.max_tokens,
        tolerance=served.target.tolerance,
    )
    for tokens in BUCKETS:
        check(tokens, served.forward)


def test_answer_is_the_same_alone_and_among_neighbours_in_any_order_and_bucket(served: Served) -> None:
    """int8 to the bit, or nearly: its ranges don't depend on what else is in the row."""
    alone = {word: served.answer([word], 8)[0] for word in ("lamp", "song", "refund", "cancel delivery")}
    for texts in (list(alone), list(alone)[::-1]):
        for tokens in (16, 32):
            together = served.answer(texts, tokens)
            for text, answer in zip(texts, together, strict=True):
                np.testing.assert_allclose(answer, alone[text], atol=1e-6 if served.target.target == "cpu" else 1e-5)


def test_three_tokens_are_answered_alike_in_every_bucket(served: Served) -> None:
    for word, label in (("lamp", "product"), ("song", "media"), ("refund", "help")):
        for tokens in BUCKETS:
            assert LABELS[int(served.answer([word], tokens)[0].argmax())] == label


def test_compiling_again_replaces_the_target_and_keeps_the_rest(workshop: Path, compiled: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(compiled, tmp_path / "bundle")
    result = run(workshop, copy, "torch", "--buckets", "16,32")
    assert result.exit_code == 0, result.output
    assert Bundle(copy).target("torch").buckets == [16, 32]
    assert Bundle(copy).target("cpu") == Bundle(compiled).target("cpu")
    assert Bundle(copy).manifest.golden == Bundle(compiled).manifest.golden


def test_name_and_version_are_a_new_bundle_s(workshop: Path, tmp_path: Path) -> None:
    result = run(workshop, tmp_path / "bundle", "torch", "--name", "shop", "--version", "2026.1")
    assert result.exit_code == 0, result.output
    assert Bundle(tmp_path / "bundle").name == "shop@2026.1"


def test_labels_may_come_from_a_file(workshop: Path, tmp_path: Path) -> None:
    labels = [
        {"name": name, "definition": f"wants {name}", "group": "help" if name == "help" else "shop"} for name in "abc"
    ]
    (workshop / "labels.json").write_text(json.dumps(labels))
    result = run(workshop, tmp_path / "bundle", labels="labels.json")
    assert result.exit_code == 0, result.output
    manifest = Bundle(tmp_path / "bundle").manifest
    assert [label.model_dump() for label in manifest.labels] == labels
    assert manifest.label_priors == dict.fromkeys("abc", 1 / 3)


def test_what_a_plain_checkpoint_does_not_say_is_assumed_aloud(workshop: Path, tmp_path: Path) -> None:
    result = run(workshop, tmp_path / "bundle")
    assert "no training.json: temperature 1, even priors, no abstaining, each label its own group" in result.output
    manifest = Bundle(tmp_path / "bundle").manifest
    assert (manifest.temperature, manifest.abstain_threshold, manifest.groups) == (1, 0, LABELS)
    assert manifest.max_tokens == 32


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A checkpoint as training leaves it, with its own workshop."""
    save_checkpoint(tmp_path / "Tiny", half=True)
    (tmp_path / "Tiny" / "tokenizer_config.json").write_text("{}")
    record = {
        "normaliser": 1,
        "max_tokens": 24,
        "labels": [{"name": name, "definition": f"wants {name}", "group": "all"} for name in LABELS],
        "temperature": 0.5,
        "label_priors": {"product": 0.5, "media": 0.25, "help": 0.25},
        "abstain_threshold": 0.6,
        "quality": {"test": {"macro_f1": 0.9}},
        "lineage": {"base": "tiny", "commit": "", "data_digest": "", "seed": 1, "versions": {}, "command": ""},
    }
    (tmp_path / "Tiny" / "training.json").write_text(json.dumps(record))
    return tmp_path


def test_training_record_goes_into_the_manifest(workshop: Path, recorded: Path) -> None:
    for name in ("calibration", "holdout", "golden"):
        shutil.copy(workshop / f"{name}.txt", recorded)
    result = run(recorded, recorded / "bundle")
    assert result.exit_code == 0, result.output
    manifest = Bundle(recorded / "bundle").manifest
    assert "no training.json" not in result.output
    assert (manifest.temperature, manifest.max_tokens, manifest.abstain_threshold) == (0.5, 24, 0.6)
    assert manifest.label_priors["product"] == 0.5
    assert manifest.groups == ["all"]
    assert manifest.quality == {"test": {"macro_f1": 0.9}}
    assert manifest.lineage["base"] == "tiny"
    assert len(manifest.lineage["weights_sha256"]) == 64


class TestFallback:
    """``--target fallback``: a student of the checkpoint, put beside the bundle's targets."""

    @pytest.fixture(autouse=True)
    def few_phrases(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("models.compiling.fallback.PHRASES", 200)
        monkeypatch.setattr("models.compiling.fallback.BUCKETS", 1 << 12)

    @pytest.fixture
    def table(self, workshop: Path) -> Path:
        """Held-out pairs of words with their kind; in its split ``test`` the kinds are wrong."""
        pairs = [(label, f"{one} {other}") for label, kind in WORDS.items() for one in kind for other in kind]
        right = [f"{text},{label},validation" for label, text in pairs]
        wrong = [f"{one} {two},{label},test" for label, one, two in zip(LABELS, "lsr", "osf", strict=True)]
        (workshop / "table.csv").write_text("\n".join(["text,label,split", *right, *wrong]))
        return workshop / "table.csv"

    @pytest.fixture
    def made(self, workshop: Path, compiled: Path, tmp_path: Path, table: Path) -> Path:
        copy = shutil.copytree(compiled, tmp_path / "bundle")
        result = run(workshop, copy, "fallback", holdout=table.name)
        assert result.exit_code == 0, result.output
        assert "of the groups agree" in result.output
        return copy

    def test_it_is_added_to_the_bundle_and_knows_what_the_checkpoint_does(self, compiled: Path, made: Path) -> None:
        bundle = Bundle(made)
        fallback = Fallback(bundle)
        assert bundle.targets == Bundle(compiled).targets
        assert bundle.manifest.golden == Bundle(compiled).manifest.golden
        assert [fallback.answer(text).intents[0][0] for text in ("lamp desk", "song", "refund parcel")] == LABELS
        assert fallback.manifest.agreement["labels"] > 0.9
        assert fallback.manifest.agreement["groups"] == fallback.manifest.agreement["labels"]  # each is its own here
        assert all((made / name).stat().st_mode & 0o444 == 0o444 for name in bundle.manifest.files)

    def test_its_confidence_is_fitted_on_the_labels_of_validation(self, made: Path) -> None:
        """Nearly all of them are right, so it is told to be sure."""
        probabilities = Fallback(Bundle(made)).probabilities(["lamp desk", "song film", "refund parcel"])
        assert probabilities.max(axis=1).min() > 0.95
        assert Fallback(Bundle(made)).manifest.abstain_threshold > 0.5

    def test_the_groups_for_which_the_model_has_a_threshold_get_one_of_its_own(
        self, workshop: Path, recorded: Path, table: Path
    ) -> None:
        record = json.loads((recorded / "Tiny" / "training.json").read_text())
        record["labels"] = [label | {"group": label["name"]} for label in record["labels"]]
        record["group_thresholds"] = {"media": 0.9, "help": 0.9}  # so product is home
        (recorded / "Tiny" / "training.json").write_text(json.dumps(record))
        for file in ("calibration.txt", "golden.txt", table.name):
            shutil.copy(workshop / file, recorded)
        result = run(recorded, recorded / "bundle", "fallback", holdout=table.name)
        assert result.exit_code == 0, result.output
        assert list(Fallback(Bundle(recorded / "bundle")).manifest.group_thresholds) == ["media", "help"]

        rows = table.read_text().splitlines()
        (recorded / "helpless.csv").write_text("\n".join(row for row in rows if ",help,validation" not in row))
        result = run(recorded, recorded / "bundle", "fallback", holdout="helpless.csv")
        assert result.exit_code == 1
        assert "no held-out query of help: nothing to fit group thresholds on" in result.output

    def test_evaluate_judges_it_as_any_target(self, made: Path, table: Path) -> None:
        options = ["--bundle", str(made), "--target", "fallback", "--table", str(table), "--split", "validation"]
        result = CliRunner().invoke(evaluate_command, options)
        assert result.exit_code == 0, result.output
        report = json.loads(result.stdout)
        assert report["model"] == f"{made}:fallback (tiny@1)"
        assert report["scores"]["group_accuracy"]["value"] > 0.9

    def test_no_held_out_query_is_learned_not_even_as_a_random_phrase(
        self, workshop: Path, compiled: Path, tmp_path: Path, table: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        learned: list[str] = []

        def spy(texts: Sequence[str], *lessons: Any, **options: Any) -> Any:
            learned.extend(texts)
            return teach(texts, *lessons, **options)

        monkeypatch.setattr("models.compiling.fallback.teach", spy)
        result = run(workshop, shutil.copytree(compiled, tmp_path / "bundle"), "fallback", holdout=table.name)
        assert result.exit_code == 0, result.output
        held_out = set(read_queries(table, max_tokens=32)) - set(
            read_queries(workshop / "calibration.txt", max_tokens=32)
        )
        assert len(held_out) > 100
        assert not held_out & set(learned)
        assert {"lamp", "song", "refund"} <= set(learned)

    def test_without_labels_that_the_model_has_nothing_is_written(
        self, workshop: Path, compiled: Path, tmp_path: Path
    ) -> None:
        copy = shutil.copytree(compiled, tmp_path / "bundle")
        (workshop / "outside.csv").write_text("text,label\nsong opera poem,outside\n")
        (workshop / "seen.csv").write_text("text,label,split\nlamp,product,validation\nlamp desk mug,product,test\n")
        none = "no held-out query has a label of the model's"
        for holdout, said in (("outside.csv", none), ("seen.csv", none), ("holdout.txt", ".csv")):
            result = run(workshop, copy, "fallback", holdout=holdout)
            assert result.exit_code == 1
            assert said in result.output
        assert Bundle(copy).digest == Bundle(compiled).digest

    def test_too_little_agreement_is_refused_where_it_is_asked_for(
        self, workshop: Path, compiled: Path, tmp_path: Path, table: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("models.compiling.fallback.BUCKETS", 1)  # every n-gram is every other
        copy = shutil.copytree(compiled, tmp_path / "bundle")
        result = run(workshop, copy, "fallback", "--min-agreement", "0.9", holdout=table.name)
        assert result.exit_code == 1
        assert "90.00% are asked for: nothing written" in result.output
        assert Bundle(copy).digest == Bundle(compiled).digest


def refused(result: Result, bundle: Path, *said: str) -> None:
    """It failed with one line that says why, and left nothing."""
    assert result.exit_code != 0
    assert "Traceback" not in result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    for part in said:
        assert part in result.output
    assert not bundle.exists()
    assert not [path for path in bundle.parent.iterdir() if path.name.startswith(f".{bundle.name}")]


def break_backend(monkeypatch: pytest.MonkeyPatch, *, in_rows: Sequence[int]) -> None:
    """Turn the logits of the ``torch`` target around in rows of these lengths, as a broken engine might."""
    load = torch_target.TorchBackend.load

    def load_broken(self: Any, core: int) -> Any:
        model = load(self, core)
        forward = model.forward

        def turned(hidden: Any, mask: Any, pool: Any) -> Any:
            return forward(hidden, mask, pool) * (-1 if hidden.shape[1] in in_rows else 1)

        monkeypatch.setattr(model, "forward", turned)
        return model

    monkeypatch.setattr(torch_target.TorchBackend, "load", load_broken)


def test_too_little_agreement_leaves_no_bundle(workshop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    break_backend(monkeypatch, in_rows=BUCKETS)
    result = run(workshop, tmp_path / "bundle")
    refused(result, tmp_path / "bundle", "of the labels agree with float32, 99.00% are asked for: nothing written")
    assert "labels that changed" in result.output


def test_too_little_agreement_keeps_the_bundle_that_was(
    workshop: Path, compiled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = shutil.copytree(compiled, tmp_path / "bundle")
    break_backend(monkeypatch, in_rows=BUCKETS)
    assert run(workshop, copy).exit_code == 1
    assert Bundle(copy).digest == Bundle(compiled).digest
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]


def test_only_queries_that_calibration_lacks_are_compared_on(workshop: Path, tmp_path: Path) -> None:
    result = run(workshop, tmp_path / "bundle", holdout="calibration.txt")
    refused(result, tmp_path / "bundle", "every held-out query is a calibration query")


def test_golden_query_with_another_answer_in_one_bucket_is_refused(
    workshop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_backend(monkeypatch, in_rows=[3])
    said = ("golden query 'lamp' in bucket 3", "instead of product")
    refused(run(workshop, tmp_path / "bundle"), tmp_path / "bundle", *said)


def test_label_that_calibration_lacks_is_named(workshop: Path, tmp_path: Path) -> None:
    (workshop / "lacking.txt").write_text("\n".join(WORDS["product"] + WORDS["media"]))
    result = run(workshop, tmp_path / "bundle", "cpu", calibration="lacking.txt")
    refused(result, tmp_path / "bundle", "none of the 16 calibration queries the label help")


def test_bundle_of_another_checkpoint_is_kept(workshop: Path, compiled: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(compiled, tmp_path / "bundle")
    manifest = json.loads((copy / "bundle.json").read_text())
    manifest["golden"][0]["probabilities"] = [0.0, 0.5, 0.5]
    (copy / "bundle.json").write_text(Manifest.model_validate(manifest).model_dump_json())
    before = Bundle(copy).digest
    result = run(workshop, copy)
    assert result.exit_code == 1
    assert "is of another checkpoint" in result.output
    assert Bundle(copy).digest == before


def test_other_labels_than_the_bundle_s_are_refused(workshop: Path, compiled: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(compiled, tmp_path / "bundle")
    (workshop / "renamed.json").write_text('["a", "b", "c"]')
    result = run(workshop, copy, labels="renamed.json")
    assert result.exit_code == 1
    assert "the bundle's labels are ['product', 'media', 'help'], the checkpoint's ['a', 'b', 'c']" in result.output


def test_folder_of_something_else_is_refused(workshop: Path) -> None:
    result = run(workshop, workshop / "Tiny")
    assert result.exit_code == 1
    assert "is no bundle" in result.output
    assert (workshop / "Tiny" / "config.json").exists()


def copy_workshop(workshop: Path, folder: Path) -> None:
    for name in ("calibration.txt", "holdout.txt", "golden.txt"):
        shutil.copy(workshop / name, folder)
    shutil.copytree(workshop / "Tiny", folder / "Tiny")


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "tokenizer.json"])
def test_missing_file_of_the_checkpoint_is_named(workshop: Path, tmp_path: Path, file: str) -> None:
    copy_workshop(workshop, tmp_path)
    (tmp_path / "Tiny" / file).unlink()
    refused(run(tmp_path, tmp_path / "bundle"), tmp_path / "bundle", file)


def test_damaged_weights_are_refused(workshop: Path, tmp_path: Path) -> None:
    copy_workshop(workshop, tmp_path)
    (tmp_path / "Tiny" / "model.safetensors").write_bytes(b"not weights")
    refused(run(tmp_path, tmp_path / "bundle"), tmp_path / "bundle", "model.safetensors: can't be read")


def test_weights_that_are_not_numbers_are_refused(workshop: Path, tmp_path: Path) -> None:
    copy_workshop(workshop, tmp_path)
    weights = load_file(tmp_path / "Tiny" / "model.safetensors")
    weights["classifier.bias"][:] = float("nan")
    save_file(weights, tmp_path / "Tiny" / "model.safetensors")
    refused(run(tmp_path, tmp_path / "bundle"), tmp_path / "bundle", "tensor 'classifier.bias' is not finite")


@pytest.mark.parametrize("option", ["calibration", "holdout", "golden", "labels"])
def test_missing_file_of_queries_or_labels_is_named(workshop: Path, tmp_path: Path, option: str) -> None:
    refused(run(workshop, tmp_path / "bundle", **{option: "absent.txt"}), tmp_path / "bundle", "absent.txt")


def test_as_many_labels_as_logits_are_asked_for(workshop: Path, tmp_path: Path) -> None:
    (workshop / "two.json").write_text('["a", "b"]')
    refused(run(workshop, tmp_path / "bundle", labels="two.json"), tmp_path / "bundle", "2 labels for a head of 3")


@pytest.mark.parametrize(
    ("buckets", "said"),
    [("8,16", "largest bucket 16 is under"), ("16,8", "must rise"), ("2,32", "3 or more"), ("a", "whole numbers")],
)
def test_buckets_that_can_t_serve_are_refused(workshop: Path, tmp_path: Path, buckets: str, said: str) -> None:
    refused(run(workshop, tmp_path / "bundle", "torch", "--buckets", buckets), tmp_path / "bundle", said)


def test_help_needs_no_engine() -> None:
    forbidden = "import sys; sys.modules.update(dict.fromkeys(['torch', 'openvino', 'nncf', 'transformers', 'rich']))"
    program = f"{forbidden}; from models.compile import command; command(['--help'])"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "--min-agreement" in shown.stdout
