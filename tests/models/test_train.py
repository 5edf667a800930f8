"""Training on a tiny random encoder: it learns, survives a kill, leaves a whole checkpoint, refuses bad input early."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="training needs torch")
pytest.importorskip("accelerate", reason="training needs accelerate")

from accelerate import Accelerator  # noqa: E402
from click.testing import CliRunner, Result  # noqa: E402
from transformers import BertConfig, BertModel, BertTokenizerFast  # noqa: E402

from models.checkpoint import CheckpointError, TrainingRecord, load_model, load_record  # noqa: E402
from models.labels import LABELS  # noqa: E402
from models.train import command  # noqa: E402
from models.training.base import find_base, load_base  # noqa: E402
from models.training.encoded import Encoded, predict  # noqa: E402
from models.training.fitting import Fit, LabelLoss, StateError, class_weights, parameter_groups  # noqa: E402
from models.training.recipe import Progress, Recipe  # noqa: E402
from models.training.task import OUTSIDE  # noqa: E402

WORDS = {
    "product": ["shoes", "lamp", "desk", "phone", "tent"],
    "help": ["refund", "order", "parcel", "return", "invoice"],
    "media": ["song", "film", "novel", "album", "podcast"],
}
FAST = ("--epochs", "4", "--learning-rate", "0.01", "--batch-size", "8", "--precision", "no", "--threads", "1")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "red", "blue", "my", "the", "a"]
    words += [word for found in WORDS.values() for word in found] + list("abcdefghijklmnopqrstuvwxyz")
    words += ["##" + letter for letter in "abcdefghijklmnopqrstuvwxyz"]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(words), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=32, initializer_range=0.2,
    )  # fmt: skip
    BertModel(config).save_pretrained(folder)
    return folder


def rows(count: int = 30) -> list[tuple[str, str]]:
    chance = random.Random(1)
    pairs = {
        f"{chance.choice(['red', 'blue', 'my', 'the', 'a'])} {chance.choice(words)} {chance.choice('abcdefgh')}": label
        for label, words in WORDS.items()
        for _ in range(count)
    }
    return list(pairs.items())


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.csv"
    path.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in rows(60)), encoding="utf-8")
    return path


def train(table: Path, base: Path, *options: str) -> Result:
    out = table.parent / "checkpoint"
    arguments = ["--table", table, "--out", out, "--base", base, "--state", table.parent / "state", *FAST, *options]
    return CliRunner().invoke(command, list(map(str, arguments)))


def test_a_table_and_an_encoder_become_a_checkpoint_that_answers(table: Path, base: Path) -> None:
    result = train(
        table, base, "--epochs", "15", "--patience", "15", "--augment", "0", "--layer-decay", "1", "--train-embeddings"
    )
    assert result.exit_code == 0, result.output
    folder = table.parent / "checkpoint"
    record = load_record(folder)
    assert [label.name for label in record.labels] == ["help", "media", "product"]
    assert record.quality["validation"]["accuracy"] > 0.8
    assert record.lineage.data_digest
    assert json.loads((folder / "config.json").read_text())["label2id"] == {"help": 0, "media": 1, "product": 2}
    model = load_model(folder)
    assert next(model.parameters()).dtype == torch.float32
    _, tokenizer = load_base(folder, ["help", "media", "product"])
    answers = predict(model, Encoded(tokenizer, ["blue parcel z", "the novel a"], 32), model.device).argmax(axis=1)
    assert answers.tolist() == [0, 1]


def test_what_a_run_saves_on_the_way_is_gone_when_it_is_done_and_the_checkpoint_is_not(
    tmp_path: Path, table: Path, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the checkpoint by default, wherever that is."""
    monkeypatch.chdir(tmp_path)
    arguments = ["--table", table, "--out", "runs/checkpoint", "--base", base, *FAST]
    assert CliRunner().invoke(command, list(map(str, arguments))).exit_code == 0
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["checkpoint"]
    assert (tmp_path / "runs" / "checkpoint" / "model.safetensors").is_file()


@pytest.mark.parametrize("state", ["out", "."])
def test_a_state_that_would_take_the_checkpoint_with_it_is_refused(
    tmp_path: Path, table: Path, base: Path, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ["--table", table, "--out", "out", "--base", base, "--state", state, *FAST]
    result = CliRunner().invoke(command, list(map(str, arguments)))
    assert (result.exit_code, "holds --out out" in result.output) == (1, True)


def test_weights_are_written_in_half_precision(table: Path, base: Path) -> None:
    from safetensors.torch import load_file

    assert train(table, base, "--epochs", "1").exit_code == 0
    weights = load_file(table.parent / "checkpoint" / "model.safetensors")
    assert {tensor.dtype for tensor in weights.values()} == {torch.float16}


def test_the_shop_s_nine_labels_keep_their_order_and_groups(tmp_path: Path, base: Path) -> None:
    lines = [
        f"{letter} {number},{label.name}"
        for letter, label in zip("abcdefghi", LABELS, strict=True)
        for number in range(10)
    ]
    (tmp_path / "table.csv").write_text("text,label\n" + "\n".join(lines) + "\n", encoding="utf-8")
    result = train(tmp_path / "table.csv", base, "--epochs", "1")
    assert result.exit_code == 0, result.output
    record = load_record(tmp_path / "checkpoint")
    assert [tuple(label.model_dump().values()) for label in record.labels] == list(LABELS)
    assert sum(record.label_priors.values()) == pytest.approx(1, abs=1e-4)


class Killed(Exception):
    """Stands for a kill at some step."""


def fit(state: Path, base: Path, *, kill_at: tuple[int, int] | None = None, **changes: Any) -> tuple[Any, Progress]:
    recipe = Recipe(**{"epochs": 3, "batch_size": 8, "learning_rate": 0.005, "seed": 3} | changes)
    torch.manual_seed(recipe.seed)
    model, tokenizer = load_base(base, list(WORDS))
    run = Fit(Accelerator(cpu=True), model, tokenizer, recipe, state, {"data": "d"}, save_every_s=0)

    def report(progress: Progress, _: int) -> None:
        if (progress.epoch, progress.step) == kill_at:
            raise Killed

    names = list(WORDS)
    texts, labels = [text for text, _ in rows()], [names.index(label) for _, label in rows()]
    best = run.run((texts[::2], labels[::2]), (texts[1::2], labels[1::2]), report)
    return best, run.progress


@pytest.mark.parametrize("kill_at", [(0, 2), (1, 3), (2, 0)])
def test_a_killed_run_continues_to_the_very_same_weights(tmp_path: Path, base: Path, kill_at: tuple[int, int]) -> None:
    whole, progress = fit(tmp_path / "whole", base)
    with pytest.raises(Killed):
        fit(tmp_path / "killed", base, kill_at=kill_at)
    resumed, resumed_progress = fit(tmp_path / "killed", base)
    assert resumed_progress.history == progress.history
    for name, tensor in whole.state_dict().items():
        assert torch.equal(tensor, resumed.state_dict()[name]), name


def test_a_kill_between_the_two_renames_of_a_save_loses_nothing(tmp_path: Path, base: Path) -> None:
    with pytest.raises(Killed):
        fit(tmp_path / "killed", base, kill_at=(1, 3))
    (tmp_path / "killed" / "last").rename(tmp_path / "killed" / "old")
    _, progress = fit(tmp_path / "killed", base)
    assert progress.history == fit(tmp_path / "whole", base)[1].history


def test_a_state_of_another_recipe_is_not_continued(tmp_path: Path, base: Path) -> None:
    with pytest.raises(Killed):
        fit(tmp_path, base, kill_at=(0, 2))
    with pytest.raises(StateError, match=r"another learning_rate.*--restart"):
        fit(tmp_path, base, learning_rate=0.1)


def test_training_stops_when_validation_no_longer_rises(tmp_path: Path, base: Path) -> None:
    _, progress = fit(tmp_path, base, epochs=50, patience=1)
    assert progress.epoch == progress.best_epoch + 2 < 50


def test_a_loss_that_is_no_number_stops_the_run(tmp_path: Path, base: Path) -> None:
    with pytest.raises(ArithmeticError, match="lower the learning rate"):
        fit(tmp_path, base, learning_rate=float("inf"))


def test_a_frozen_word_table_does_not_move(tmp_path: Path, base: Path) -> None:
    before = load_base(base, list(WORDS))[0].get_input_embeddings().weight
    frozen, _ = fit(tmp_path / "frozen", base, epochs=1)
    trained, _ = fit(tmp_path / "trained", base, epochs=1, train_embeddings=True)
    assert torch.equal(frozen.get_input_embeddings().weight, before)
    assert not torch.equal(trained.get_input_embeddings().weight, before)


def test_lower_layers_learn_slower_and_norms_do_not_decay(base: Path) -> None:
    model, _ = load_base(base, list(WORDS))
    groups = parameter_groups(model, Recipe(learning_rate=1.0, layer_decay=0.5))
    assert sorted({group["peak"] for group in groups}) == [0.25, 0.5, 1.0]
    assert {parameter.ndim for group in groups if not group["weight_decay"] for parameter in group["params"]} == {1}
    assert sum(len(group["params"]) for group in groups) == len(list(model.parameters()))


def test_confidence_is_fitted_on_the_sources_held_out_for_decisions(base: Path, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    labels = [*WORDS]
    lines = []
    for place, (text, label) in enumerate(rows(60)):
        split = ("train", "train", "validation", "development")[place % 4]
        # Of the rows for decisions every other has a label that no model can know.
        wrong = split == "development" and place % 8 == 3
        lines.append(f"{text},{labels[labels.index(label) - 1] if wrong else label},{split}")

    def trained(lines: list[str]) -> TrainingRecord:
        table.write_text("text,label,split\n" + "\n".join(lines) + "\n", encoding="utf-8")
        options = ("--epochs", "8", "--patience", "8", "--augment", "0", "--layer-decay", "1", "--train-embeddings")
        result = train(table, base, *options, "--home-group", "product", "--redirect-cost", "30")
        assert result.exit_code == 0, result.output
        return load_record(tmp_path / "checkpoint")

    doubtful, sure = trained(lines), trained([line for line in lines if not line.endswith("development")])
    assert doubtful.temperature > 1.5 * sure.temperature
    assert set(doubtful.group_thresholds) == set(sure.group_thresholds) == {"help", "media"}
    # Of the sources for decisions some home rows are taken wrongly; on validation none is.
    assert sum(doubtful.group_thresholds.values()) > sum(sure.group_thresholds.values())


def test_a_home_group_that_has_nothing_to_be_fitted_on_is_refused_before_training(base: Path, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    splits = [("red lamp", "product", "train"), ("my refund", "help", "train"), ("a song", "media", "train"),
              ("blue lamp", "product", "validation"), ("my order", "help", "validation")]  # fmt: skip
    table.write_text("text,label,split\n" + "".join(f"{','.join(row)}\n" for row in splits), encoding="utf-8")
    assert (
        "--home-group shop: the table's groups are help, media, product"
        in train(table, base, "--home-group", "shop").output
    )
    assert "no rows of media in validation to fit thresholds on" in train(table, base, "--home-group", "help").output


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--redirect-cost", "10"), "--redirect-cost is of thresholds that --home-group asks for"),
        (("--match-hidden", "1"), "need a --teacher"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(
    table: Path, base: Path, options: tuple[str, ...], reason: str
) -> None:
    result = train(table, base, *options)
    assert result.exit_code == 2
    assert reason in result.output


def test_rows_outside_are_known_by_their_usual_name(base: Path, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    outside = "".join(f"{a}{b},outside\n" for a in "qxz" for b in "wuy")
    table.write_text("text,label\n" + "".join(f"{t},{n}\n" for t, n in rows(20)) + outside, encoding="utf-8")
    assert train(table, base, "--epochs", "1").exit_code == 0
    assert len(load_record(tmp_path / "checkpoint").labels) == 3


def test_rare_labels_weigh_more_and_rows_weigh_one_on_average() -> None:
    labels = [0] * 8 + [1] * 2
    assert class_weights(labels, 2, 0).tolist() == [1, 1]
    level = class_weights(labels, 2, 1)
    assert level.tolist() == pytest.approx([0.625, 2.5])
    assert level[labels].mean() == pytest.approx(1)
    assert class_weights([*labels, OUTSIDE, OUTSIDE], 2, 1).tolist() == level.tolist()


def test_a_text_outside_every_label_costs_least_where_the_answer_is_even() -> None:
    loss = LabelLoss(torch.ones(2), [0.5, 0.5], Recipe(label_smoothing=0, outside_weight=0.5))
    logits = torch.tensor([[2.0, 0.0], [0.0, 0.0], [2.0, 0.0]])

    def of(targets: list[int], rows: list[int]) -> float:
        return float(loss(logits[rows], torch.tensor(targets)))

    even, sure = of([OUTSIDE], [1]), of([OUTSIDE], [0])
    assert even == pytest.approx(0.5 * 0.6931, abs=1e-4)
    assert even < sure
    assert of([0, OUTSIDE], [0, 1]) == pytest.approx((of([0], [0]) + even) / 2)


def test_the_answer_to_a_text_outside_can_lean_to_labels_that_are_alone_in_their_group() -> None:
    loss = LabelLoss(torch.ones(3), [0.5, 0.25, 0.25], Recipe(label_smoothing=0, outside_weight=1))
    by_group, by_label = torch.tensor([[0.5, 0.25, 0.25]]).log(), torch.zeros(1, 3)
    outside = torch.tensor([OUTSIDE])
    assert loss(by_group, outside) < loss(by_label, outside)


def test_rows_outside_every_label_make_the_model_unsure_of_their_like(base: Path, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    outside = "".join(f"{a}{b} {b}{a},none\n" for a in "qxzjkv" for b in "wuyfgm")
    table.write_text("text,label\n" + "".join(f"{t},{n}\n" for t, n in rows(60)) + outside, encoding="utf-8")
    options = ("--epochs", "12", "--patience", "12", "--augment", "0", "--layer-decay", "1", "--label-smoothing", "0")

    def confidence(weight: str) -> float:
        result = train(table, base, *options, "--out-of-scope-label", "none", "--outside-weight", weight)
        assert result.exit_code == 0, result.output
        folder = tmp_path / "checkpoint"
        assert [label.name for label in load_record(folder).labels] == ["help", "media", "product"]
        unknown = Encoded(
            BertTokenizerFast.from_pretrained(folder), [f"{a}{b} {b}{a}" for a in "qxzj" for b in "pc"], 32
        )
        logits = torch.tensor(predict(load_model(folder), unknown, torch.device("cpu")))
        return float(torch.softmax(logits, 1).max(1).values.mean())

    assert confidence("2") < confidence("0") - 0.1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("text,intent\na,b\n", "no column 'label'"),
        ("text,label\na,b\nc,b\n", "only one label, 'b'"),
        ("text,label\ncod,pay\ncod,fish\n", "'cod' is pay (line 2) and fish (line 3)"),
        ("text,label\n,b\nc,b\n", "1 rows without a text or a label: line 2"),
        ("text,label,split\na,b,train\na,b,test\n", "the split leaks"),
    ],
)
def test_a_bad_table_is_refused_before_the_encoder_is_looked_for(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "table.csv").write_text(text, encoding="utf-8")
    result = train(tmp_path / "table.csv", tmp_path / "no-encoder")
    assert result.exit_code == 1
    assert reason in result.output


def test_an_encoder_without_tokenizer_or_folder_is_refused(table: Path, base: Path, tmp_path: Path) -> None:
    assert "no such folder" in train(table, tmp_path / "none").output
    (tmp_path / "half").mkdir()
    for name in ("config.json", "tokenizer_config.json"):
        (tmp_path / "half" / name).write_bytes((base / name).read_bytes())
    with pytest.raises(CheckpointError, match=r"tokenizer.json missing"):
        find_base(str(tmp_path / "half"))


def test_help_needs_no_torch() -> None:
    import subprocess
    import sys

    code = (
        "import sys; import models.train, models.prepare; sys.exit(bool({'torch', 'transformers'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
