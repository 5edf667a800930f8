"""After the last epoch: fit the confidence, score every split but train, write the checkpoint folder."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging

from app.text import NORMALISER_VERSION
from models.checkpoint import Lineage, TrainingRecord, save_record
from models.data.table import TableError
from models.training.confidence import fit_abstain_threshold, fit_group_thresholds, fit_temperature
from models.training.encoded import Encoded, predict
from models.training.fitting import class_weights
from models.training.recipe import Recipe
from models.training.scores import Floats, Ints, score, softmax
from models.training.task import OUTSIDE, Task


@dataclasses.dataclass(frozen=True)
class Home:
    """The group whose page a shop shows unless another answer is confident enough."""

    group: str
    # What taking a thousandth of its queries costs, in thousandths of another group's queries left at home.
    redirect_cost: float

    def check(self, task: Task) -> None:
        """Raises ``TableError`` when thresholds can't be fitted: that is better known before training than after."""
        groups = list(dict.fromkeys(task.groups.values()))
        if self.group not in groups:
            raise TableError(f"--home-group {self.group}: the table's groups are {', '.join(groups)}")
        if len(groups) == 1:
            raise TableError(f"--home-group {self.group}: the table has no other group to have thresholds")
        present = {task.groups[task.names[target]] for target in task.splits[task.decisive].targets}
        if lacking := [group for group in groups if group not in present]:
            raise TableError(f"--home-group: no rows of {', '.join(lacking)} in {task.decisive} to fit thresholds on")


def finish(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    task: Task,
    recipe: Recipe,
    lineage: Lineage,
    out: Path,
    home: Home | None = None,
) -> TrainingRecord:
    """Turn fitted weights into a checkpoint at ``out`` and return its record.

    Temperature and the groups' thresholds are fitted on the split ``development`` where the table has one, else on
    validation: a model is surer of the sources it was trained on than it can be of others. The threshold to abstain
    under is always validation's, since it says how many right answers of known sources may be lost. The weights are
    rounded to float16 before anything is measured: what is scored is what is written.
    """
    round_to_half(model)
    logits: dict[str, Floats] = {
        name: predict(model, Encoded(tokenizer, split.texts, recipe.max_tokens), model.device)
        for name, split in task.splits.items()
        if name != "train"
    }
    truth = {name: np.array(task.splits[name].targets) for name in logits}
    decisive = task.decisive
    temperature = fit_temperature(logits[decisive], truth[decisive])
    probabilities = {name: softmax(values, temperature) for name, values in logits.items()}
    record = TrainingRecord(
        normaliser=NORMALISER_VERSION,
        max_tokens=recipe.max_tokens,
        labels=task.labels,
        temperature=round(temperature, 4),
        label_priors=label_priors(task, recipe.balance),
        abstain_threshold=round(fit_abstain_threshold(probabilities["validation"], truth["validation"]), 4),
        group_thresholds=group_thresholds(probabilities[decisive], truth[decisive], task, home) if home else {},
        quality={
            name: score(values, truth[name], task.names, task.groups, task.splits[name].sources)
            for name, values in probabilities.items()
        },
        lineage=lineage,
    )
    write_checkpoint(model, tokenizer, record, out)
    return record


def group_thresholds(probabilities: Floats, truth: Ints, task: Task, home: Home) -> dict[str, float]:
    groups = list(dict.fromkeys(task.groups.values()))
    group_of = np.array([groups.index(label.group) for label in task.labels])
    found = fit_group_thresholds(
        probabilities @ np.eye(len(groups))[group_of],
        group_of[truth],
        home=groups.index(home.group),
        redirect_cost=home.redirect_cost,
    )
    return {groups[at]: round(threshold, 6) for at, threshold in found.items()}


def round_to_half(model: torch.nn.Module) -> None:
    """Give every weight the value it will have on disk, in float32."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.half().float())


def label_priors(task: Task, balance: float) -> dict[str, float]:
    """What the model was taught to take for each label's share: its training rows times its weight in the loss."""
    targets = [target for target in task.splits["train"].targets if target != OUTSIDE]
    counts = torch.bincount(torch.tensor(targets), minlength=len(task.labels))
    weighted = counts.double() * class_weights(targets, len(task.labels), balance).double()
    shares = weighted / weighted.sum()
    return {name: round(float(share), 6) for name, share in zip(task.names, shares, strict=True)}


def write_checkpoint(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, record: TrainingRecord, out: Path
) -> None:
    """Write float16 weights, tokenizer and record beside ``out``, then put them in its place."""
    new = out.with_name(out.name + ".new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    model.half().save_pretrained(new)  # type: ignore[no-untyped-call]
    tokenizer.save_pretrained(new)
    save_record(new, record)
    for file in new.iterdir():
        file.chmod(0o644)  # safetensors writes for the owner only, and a container serves as another user
    shutil.rmtree(out, ignore_errors=True)
    new.rename(out)
