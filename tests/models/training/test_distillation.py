"""A student is some of its teacher's layers, and learns what its teacher says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="training needs torch")
pytest.importorskip("accelerate", reason="training needs accelerate")

from accelerate import Accelerator  # noqa: E402
from transformers.utils import logging  # noqa: E402

from models.checkpoint import load_model  # noqa: E402
from models.training.base import load_base  # noqa: E402
from models.training.distillation import (  # noqa: E402
    Answers,
    Distillation,
    TeacherError,
    Teaching,
    answers,
    choose_layers,
    cut,
    evenly_spread,
    make_student,
)
from models.training.encoded import Encoded  # noqa: E402
from models.training.fitting import Fit, StateError  # noqa: E402
from models.training.recipe import Progress, Recipe  # noqa: E402
from tests.tiny_models import CONFIGS, make_classifier  # noqa: E402
from tests.tiny_teacher import NAMES, rows, save_teacher  # noqa: E402


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_teacher(tmp_path_factory.mktemp("teacher"))


@pytest.mark.parametrize(
    ("total", "count", "kept"),
    [
        (6, 1, (0,)),
        (6, 2, (0, 5)),
        (6, 3, (0, 2, 5)),
        (6, 4, (0, 1, 3, 5)),
        (6, 6, (0, 1, 2, 3, 4, 5)),
        (12, 3, (0, 5, 11)),
    ],
)
def test_layers_are_kept_from_first_to_last_in_even_steps(total: int, count: int, kept: tuple[int, ...]) -> None:
    assert evenly_spread(total, count) == kept


def test_layers_can_be_chosen_by_hand() -> None:
    assert choose_layers(6, None, (0, 3, 4)) == (0, 3, 4)


@pytest.mark.parametrize(
    ("count", "keep", "reason"),
    [
        (0, (), "a student of 0 layers: the teacher has 6"),
        (7, (), "a student of 7 layers: the teacher has 6, so 1 to 6"),
        (None, (0, 6), r"can't keep the layers \[0, 6\]: name rising ones of 0 to 5"),
        (None, (2, 0), "rising"),
        (None, (1, 1), "rising"),
        (None, (-1, 1), "rising"),
    ],
)
def test_layers_that_the_teacher_lacks_are_refused(count: int | None, keep: tuple[int, ...], reason: str) -> None:
    with pytest.raises(TeacherError, match=reason):
        choose_layers(6, count, keep)


@pytest.mark.parametrize("architecture", CONFIGS)
def test_what_is_left_after_the_cut_is_the_teacher_s(architecture: str, tmp_path: Path) -> None:
    whole, student = make_classifier(architecture), make_classifier(architecture)
    cut(student, [1])
    logging.disable_progress_bar()
    student.save_pretrained(tmp_path)
    loaded = load_model(tmp_path).state_dict()
    second = {name: tensor for name, tensor in whole.state_dict().items() if "layer.0." not in name}
    assert loaded.keys() == {name.replace("layer.1.", "layer.0.") for name in second}
    for name, tensor in second.items():
        assert torch.equal(loaded[name.replace("layer.1.", "layer.0.")], tensor), name


def taught(teacher: Path, texts: list[str], **changes: Any) -> tuple[Distillation, Encoded]:
    _, tokenizer = load_base(teacher, NAMES)
    teaching = Teaching(**{"teacher_digest": "", "keep_layers": (0, 1)} | changes)
    distillation = Distillation(load_model(teacher), teaching, Accelerator(cpu=True))
    encoded = Encoded(tokenizer, texts, 32)
    distillation.read(encoded)
    return distillation, encoded


class Counted(torch.nn.Module):
    """A teacher that counts the texts it is asked about."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model, self.asked = model, 0

    def forward(self, **batch: Any) -> Any:
        self.asked += len(batch["input_ids"])
        return self.model(**batch)


def test_only_a_changed_text_is_asked_about_again(teacher: Path) -> None:
    distillation, encoded = taught(teacher, ["lamp desk", "song", "refund parcel cancel"])
    epoch = Encoded(encoded.tokenizer, ["lamp desk", "song", "refund parcel"], 32)
    counted = distillation.teacher = Counted(distillation.teacher)
    same, changed = distillation.on(epoch, [1, 0]), distillation.on(epoch, [2, 1])
    assert counted.asked == 1
    for found, indices in ((same, [1, 0]), (changed, [2, 1])):
        expected = answers(counted.model, epoch.batch(indices, torch.device("cpu")))
        assert torch.allclose(found.logits, expected.logits, atol=1e-5)
        assert torch.allclose(found.cls, expected.cls, atol=1e-5)
    assert torch.equal(distillation.on(encoded, [2]).logits, distillation.known.logits[2:])


def test_the_loss_is_the_labels_and_the_teacher_s_word_by_their_shares(teacher: Path) -> None:
    label_loss = torch.tensor(3.0)
    distillation, encoded = taught(teacher, ["lamp", "song"], share=0.25, temperature=2.0, match_hidden=10.0)
    same = distillation.on(encoded, [0, 1])
    assert distillation.mix(label_loss, same, encoded, [0, 1]).item() == pytest.approx(2.25, abs=1e-5)

    student = Answers(torch.zeros(2, 3), -same.cls)
    p = torch.softmax(same.logits / 2, dim=1)
    soft = (p * (p.log() + torch.tensor(3.0).log())).sum(dim=1).mean()
    # Opposite directions of length one are 2 apart, squared 4.
    expected = 0.75 * 3 + 0.25 * 4 * soft.item() + 10 * 4
    assert distillation.mix(label_loss, student, encoded, [0, 1]).item() == pytest.approx(expected, rel=1e-5)


def test_the_length_of_a_hidden_state_does_not_matter(teacher: Path) -> None:
    distillation, encoded = taught(teacher, ["lamp"], share=0.0, match_hidden=1.0)
    same = distillation.on(encoded, [0])
    longer = Answers(same.logits, same.cls * 7)
    assert distillation.mix(torch.tensor(0.0), longer, encoded, [0]).item() == pytest.approx(0, abs=1e-6)


class Killed(Exception):
    """Stands for a kill at some step."""


def fit(
    state: Path,
    teacher: Path,
    *,
    kill_at: tuple[int, int] | None = None,
    match_hidden: float = 1.0,
    share: float = 0.5,
    labels: list[int] | None = None,
    epochs: int = 2,
    augment: float = 0.3,
) -> tuple[Any, Fit]:
    recipe = Recipe(epochs=epochs, patience=epochs, batch_size=8, learning_rate=0.01, augment=augment, seed=3)
    torch.manual_seed(recipe.seed)
    model, tokenizer = load_base(teacher, NAMES)
    teaching = Teaching("", (0,), share=share, match_hidden=match_hidden)
    accelerator = Accelerator(cpu=True)
    distillation = make_student(model, teacher, teaching, accelerator)
    identity = {"distillation": {"keep_layers": teaching.keep_layers, "match_hidden": match_hidden}}
    run = Fit(accelerator, model, tokenizer, recipe, state, identity, save_every_s=0, distillation=distillation)

    def report(progress: Progress, _: int) -> None:
        if (progress.epoch, progress.step) == kill_at:
            raise Killed

    texts, truth = [text for text, _ in rows()], [NAMES.index(label) for _, label in rows()]
    return run.run((texts[::2], labels or truth[::2]), (texts[1::2], truth[1::2]), report), run


@pytest.mark.parametrize("kill_at", [(0, 2), (1, 3)])
def test_a_killed_distillation_continues_to_the_very_same_weights(
    tmp_path: Path, teacher: Path, kill_at: tuple[int, int]
) -> None:
    whole, _ = fit(tmp_path / "whole", teacher)
    with pytest.raises(Killed):
        fit(tmp_path / "killed", teacher, kill_at=kill_at)
    resumed, _ = fit(tmp_path / "killed", teacher)
    for name, tensor in whole.state_dict().items():
        assert torch.equal(tensor, resumed.state_dict()[name]), name


def test_a_state_of_another_distillation_is_not_continued(tmp_path: Path, teacher: Path) -> None:
    with pytest.raises(Killed):
        fit(tmp_path, teacher, kill_at=(0, 2))
    with pytest.raises(StateError, match="another distillation"):
        fit(tmp_path, teacher, match_hidden=2.0)


def test_a_student_learns_from_its_teacher_alone(tmp_path: Path, teacher: Path) -> None:
    """Every label in its table is wrong, and has no share in the loss."""
    wrong = [(NAMES.index(label) + 1) % 3 for _, label in rows()[::2]]
    student, run = fit(tmp_path, teacher, share=1.0, labels=wrong, epochs=15, augment=0)
    assert run.progress.best_score > 0.7
    untouched = load_model(teacher)
    assert torch.equal(student.get_input_embeddings().weight, untouched.get_input_embeddings().weight)
    assert run.distillation is not None
    for name, tensor in untouched.state_dict().items():
        assert torch.equal(run.distillation.teacher.state_dict()[name], tensor), name
