"""A smaller student of a trained teacher: some of its layers, taught by its answers as well as by the labels.

The student is the teacher without the layers that are not kept: the same tokenizer, embeddings and head. Its loss is

    (1 - share) · labels  +  share · T² · KL(teacher, student; both at temperature T)  +  match_hidden · [CLS]

The first two terms are Hinton, Vinyals & Dean (2015); T² keeps the soft term's gradients as large as the labels'
whatever T is. The third is the squared distance of L2-normalised [CLS] states of Sun et al. (2019), "Patient Knowledge
Distillation", equation 7. They sum it over inner layers; here it is taken at the last one, the state that the head
reads, whose counterpart is the same however many layers the student has. It needs no projection between widths, as
TinyBERT's would: the student is as wide as its teacher. The teacher was taught with the labels' weights already, so the
soft term weighs every row alike.

What the teacher says of the table's own texts is the same in every epoch: it is asked once, at the start, and the
answers stay in memory (1.6 kB a text for MiniLM). A text with a typo or a lost end is another text, which may even mean
less; taught the whole text's answer the student would be told to be sure where its teacher isn't. It is asked anew in
its batch, and not kept, since the same slip seldom comes twice. Both passes batch the same texts in the same way after
a kill, so that a resumed run sees the very same answers.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from accelerate import Accelerator  # type: ignore[import-untyped]
from torch.nn import functional as F
from transformers import PreTrainedModel

from models.architectures import ADAPTERS
from models.checkpoint import CheckpointError, load_model, load_record
from models.data.table import digest
from models.training.encoded import Encoded

_TABLE_BATCH = 128  # texts; the teacher's pass over the table keeps no gradients


class TeacherError(CheckpointError):
    """A checkpoint that can't teach this table, or has no such student."""


@dataclasses.dataclass(frozen=True)
class Teaching:
    """What decides the outcome of a distillation besides the recipe."""

    teacher_digest: str  # sha256 of its weights
    keep_layers: tuple[int, ...]  # of the teacher, from 0
    share: float = 0.5  # of the loss that is the teacher's word
    temperature: float = 2.0
    match_hidden: float = 0.0


def evenly_spread(total: int, count: int) -> tuple[int, ...]:
    """``count`` of ``total`` layers, from 0: the first, the last, and steps between them as equal as they can be.

    A single layer is the first, the only one used to reading embeddings.
    """
    return tuple(place * (total - 1) // max(1, count - 1) for place in range(count))


def choose_layers(total: int, count: int | None, keep: Sequence[int]) -> tuple[int, ...]:
    """The layers that a student of a teacher with ``total`` has: ``keep`` where given, else ``count`` spread evenly.

    Raises ``TeacherError`` for more layers than there are, and a list that doesn't rise or leaves the teacher.
    """
    if not keep:
        if count is None or not 1 <= count <= total:
            raise TeacherError(f"a student of {count} layers: the teacher has {total}, so 1 to {total} can be kept")
        return evenly_spread(total, count)
    if list(keep) != sorted(set(keep)) or keep[0] < 0 or keep[-1] >= total:
        raise TeacherError(f"can't keep the layers {list(keep)}: name rising ones of 0 to {total - 1}")
    return tuple(keep)


def plan(
    teacher: Path,
    labels: Sequence[str],
    student_layers: int | None,
    keep_layers: Sequence[int],
    *,
    share: float,
    temperature: float,
    match_hidden: float,
) -> Teaching:
    """How the checkpoint ``teacher`` will teach a table with ``labels``, known before any weight is read.

    Raises ``TeacherError`` when its labels or its layers don't allow it, and ``CheckpointError`` when it is none.
    """
    known = [label.name for label in load_record(teacher).labels]
    if known != list(labels):
        lacking = [f"{name!r} only in the teacher" for name in known if name not in labels]
        lacking += [f"{name!r} only in the table" for name in labels if name not in known]
        reason = ", ".join(lacking) or f"in another order, {known} and {list(labels)}"
        raise TeacherError(f"{teacher}: the teacher's labels differ from the table's: {reason}")
    config = json.loads((teacher / "config.json").read_bytes())
    architecture = str(config.get("model_type"))
    if architecture not in ADAPTERS:
        raise TeacherError(f"{teacher}: architecture {architecture!r}: only {', '.join(ADAPTERS)} can lose layers")
    total = int(config[ADAPTERS[architecture].settings["layers"]])
    try:
        kept = choose_layers(total, student_layers, keep_layers)
    except TeacherError as error:
        raise TeacherError(f"{teacher}: {error}") from error
    return Teaching(digest(teacher / "model.safetensors"), kept, share, temperature, match_hidden)


def cut(model: PreTrainedModel, keep: Sequence[int]) -> None:
    """Leave only the layers ``keep`` in ``model``."""
    adapter = ADAPTERS[str(model.config.model_type)]
    layers = model.get_submodule(adapter.layers.removesuffix(".{}."))
    assert isinstance(layers, torch.nn.ModuleList), "every adapter's layers are a ModuleList. This is a bug."
    for index in reversed(range(len(layers))):
        if index not in keep:
            del layers[index]
    setattr(model.config, adapter.settings["layers"], len(keep))


def make_student(model: PreTrainedModel, teacher: Path, teaching: Teaching, accelerator: Accelerator) -> Distillation:
    """Make ``model``, loaded from ``teacher``, its student; returns what will teach it."""
    cut(model, teaching.keep_layers)
    return Distillation(load_model(teacher), teaching, accelerator)


class Answers(NamedTuple):
    """What a model says of n texts."""

    logits: torch.Tensor  # float32 [n, labels]
    cls: torch.Tensor  # float32 [n, hidden], the last layer's [CLS]


def answers(model: torch.nn.Module, batch: dict[str, torch.Tensor]) -> Answers:
    output = model(**batch, output_hidden_states=True)
    return Answers(output.logits.float(), output.hidden_states[-1][:, 0].float())


class Distillation:
    """A teacher, and its answers to the texts of one table."""

    def __init__(self, teacher: PreTrainedModel, teaching: Teaching, accelerator: Accelerator) -> None:
        self.teaching, self.accelerator = teaching, accelerator
        self.teacher = teacher.to(accelerator.device).eval().requires_grad_(False)

    def read(self, table: Encoded) -> None:
        """Ask the teacher about every text of the table, batched by length; takes an epoch's forward passes."""
        self.table = table
        order = sorted(range(len(table.lengths)), key=lambda index: table.lengths[index])
        found = [self._ask(table, order[at : at + _TABLE_BATCH]) for at in range(0, len(order), _TABLE_BATCH)]
        place = torch.tensor(order).argsort()  # of a text in that order
        # On the host: a device has better uses for its memory than a table of any size.
        self.known = Answers(*(torch.cat([part.cpu() for part in parts])[place] for parts in zip(*found, strict=True)))

    def mix(self, label_loss: torch.Tensor, student: Answers, encoded: Encoded, indices: Sequence[int]) -> torch.Tensor:
        """The whole loss for the texts ``indices`` of ``encoded``, of which the student said ``student``."""
        teacher, teaching = self.on(encoded, indices), self.teaching
        soft = F.kl_div(
            F.log_softmax(student.logits / teaching.temperature, dim=1),
            F.log_softmax(teacher.logits / teaching.temperature, dim=1),
            reduction="batchmean",
            log_target=True,
        )
        loss = (1 - teaching.share) * label_loss + teaching.share * teaching.temperature**2 * soft
        if teaching.match_hidden:
            distance = F.normalize(student.cls, dim=1) - F.normalize(teacher.cls, dim=1)  # (n, hidden)
            loss = loss + teaching.match_hidden * distance.square().sum(dim=1).mean()
        return loss

    def on(self, encoded: Encoded, indices: Sequence[int]) -> Answers:
        """The teacher's answers to an epoch's texts: remembered where the table has the same tokens, else new."""
        device = self.accelerator.device
        taught = Answers(*(part[list(indices)].to(device) for part in self.known))
        changed = [
            place for place, index in enumerate(indices) if encoded.input_ids[index] != self.table.input_ids[index]
        ]
        if changed:
            new = self._ask(encoded, [indices[place] for place in changed])
            taught.logits[changed], taught.cls[changed] = new.logits, new.cls
        return taught

    def _ask(self, encoded: Encoded, indices: Sequence[int]) -> Answers:
        with torch.no_grad(), self.accelerator.autocast():
            return answers(self.teacher, encoded.batch(indices, self.accelerator.device))
