"""The training loop: encoder + labelled rows → fitted classifier, saved often enough to survive a kill.

Everything random is a function of (seed, epoch) or lies in the saved state, so a run that was killed and started again
sees the same batches, the same typos and the same dropout as one that was not.
"""

from __future__ import annotations

import dataclasses
import json
import random
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator  # type: ignore[import-untyped]
from accelerate.utils import broadcast_object_list  # type: ignore[import-untyped]
from torch.nn import functional as F
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from models.training.augment import augment
from models.training.batches import bucketed, shared_out
from models.training.distillation import Distillation, answers
from models.training.encoded import Encoded, predict
from models.training.recipe import Progress, Recipe
from models.training.scores import macro_f1
from models.training.task import OUTSIDE

Report = Callable[[Progress, int], None]  # called after each step with the number of steps an epoch has


class StateError(ValueError):
    """The saved state belongs to another run."""


def class_weights(labels: Sequence[int], count: int, balance: float) -> torch.Tensor:
    """Weights of the loss [count], with a mean of 1 over the rows that have a label."""
    counts = torch.bincount(torch.tensor([label for label in labels if label != OUTSIDE]), minlength=count)
    shares = counts.float() / counts.sum()
    weights = shares.clamp_min(1e-9) ** -balance
    return weights / (weights * shares).sum()


class LabelLoss(torch.nn.Module):
    """Cross-entropy for texts that have a label; uncertainty for those that have none.

    Texts outside are taught the answer ``unsure`` [labels], the outlier exposure of Hendrycks, Mazeika & Dietterich
    (2019): a model that has seen other languages and mere letters answered so stays unsure of those it has not seen.
    """

    unsure: torch.Tensor

    def __init__(self, weights: torch.Tensor, unsure: Sequence[float], recipe: Recipe) -> None:
        super().__init__()
        self.register_buffer("unsure", torch.tensor(unsure))
        self.outside_weight = recipe.outside_weight
        self.of_labels = torch.nn.CrossEntropyLoss(
            weight=weights, label_smoothing=recipe.label_smoothing, ignore_index=OUTSIDE, reduction="none"
        )

    def forward(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Logits [n, labels] float32 and targets [n] int64 to the mean loss over the n texts."""
        of_labels: torch.Tensor = self.of_labels(logits, targets)  # 0 for texts outside
        to_unsure = -(F.log_softmax(logits, dim=1) @ self.unsure) * (targets == OUTSIDE)
        return (of_labels + self.outside_weight * to_unsure).mean()


def parameter_groups(model: PreTrainedModel, recipe: Recipe) -> list[dict[str, Any]]:
    """AdamW's groups, one a layer and kind: slower towards the input, no decay for biases and norms."""
    layers = int(getattr(model.config, "num_hidden_layers", 0))
    groups: dict[tuple[int, bool], list[torch.nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            groups.setdefault((_depth(name, layers), parameter.ndim > 1), []).append(parameter)
    return [
        {
            "params": parameters,
            "peak": recipe.learning_rate * recipe.layer_decay ** (layers - depth),
            "weight_decay": recipe.weight_decay if decays else 0.0,
        }
        for (depth, decays), parameters in sorted(groups.items(), key=lambda item: item[0])
    ]


def _depth(name: str, layers: int) -> int:
    """0 for the embeddings, 1 … layers for the encoder's layers; the head learns as fast as the top one."""
    if "embeddings" in name:
        return 0
    parts = name.split(".")
    numbers = [int(part) for part in parts if part.isdigit()]
    return numbers[0] + 1 if "encoder" in parts and numbers else layers


class Fit:
    """One training run, from its saved state if there is one.

    ``state`` is the folder that the run may use between starts; it holds the last state and the best weights.
    ``unsure`` [labels] is the answer to texts outside every label, by default the same for each.
    """

    def __init__(
        self,
        accelerator: Accelerator,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        recipe: Recipe,
        state: Path,
        identity: dict[str, Any],
        save_every_s: float = 120.0,
        distillation: Distillation | None = None,
        unsure: Sequence[float] = (),
    ) -> None:
        self.accelerator, self.tokenizer, self.recipe = accelerator, tokenizer, recipe
        self.state, self.save_every_s, self.distillation, self.unsure = state, save_every_s, distillation, unsure
        model.get_input_embeddings().requires_grad_(recipe.train_embeddings)
        optimizer = torch.optim.AdamW(parameter_groups(model, recipe), lr=recipe.learning_rate)
        self.model, self.optimizer = accelerator.prepare(model, optimizer)
        self.progress = Progress()
        accelerator.register_for_checkpointing(self.progress)
        self._claim(identity | dataclasses.asdict(recipe))

    def _claim(self, identity: dict[str, Any]) -> None:
        """Make the state folder this run's, or continue from it when it is already."""
        identity = json.loads(json.dumps(identity))  # as it is read back: tuples become lists
        note = self.state / "run.json"
        if note.is_file():
            known = json.loads(note.read_text(encoding="utf-8"))
            different = sorted(name for name in identity if known.get(name) != identity[name])
            if different:
                raise StateError(
                    f"{self.state} holds an unfinished run with another {', '.join(different)}; "
                    "finish that one, or start over with --restart"
                )
            # "old" is what a kill between the two renames of a save leaves.
            for name in ("last", "old"):
                if (self.state / name).is_dir():
                    self.accelerator.load_state(str(self.state / name))
                    break
        elif self.accelerator.is_main_process:
            self.state.mkdir(parents=True, exist_ok=True)
            note.write_text(json.dumps(identity, indent=2), encoding="utf-8")
        self.accelerator.wait_for_everyone()

    def run(
        self,
        train: tuple[Sequence[str], Sequence[int]],
        validation: tuple[Sequence[str], Sequence[int]],
        report: Report = lambda progress, steps: None,
    ) -> PreTrainedModel:
        """Train until the epochs or the patience end; returns the model with the best epoch's weights."""
        recipe, progress = self.recipe, self.progress
        texts, labels = train
        count = self.accelerator.unwrap_model(self.model).config.num_labels
        weights = class_weights(labels, count, recipe.balance)
        unsure = self.unsure or [1 / count] * count
        self.loss = LabelLoss(weights, unsure, recipe).to(self.accelerator.device)
        if self.distillation:
            self.distillation.read(Encoded(self.tokenizer, texts, recipe.max_tokens))
        encoded_validation = Encoded(self.tokenizer, validation[0], recipe.max_tokens)
        targets = torch.tensor(labels, device=self.accelerator.device)
        while progress.epoch < recipe.epochs and progress.epoch - progress.best_epoch <= recipe.patience:
            self._epoch(texts, targets, report)
            self._validate(encoded_validation, np.array(validation[1]))
            report(progress, 0)
        model: PreTrainedModel = self.accelerator.unwrap_model(self.model)
        model.load_state_dict(torch.load(self.state / "best.pt", map_location="cpu", weights_only=True))
        return model

    def _epoch(self, texts: Sequence[str], targets: torch.Tensor, report: Report) -> None:
        recipe, progress, accelerator = self.recipe, self.progress, self.accelerator
        chance = random.Random(f"{recipe.seed}:{progress.epoch}")
        encoded = Encoded(self.tokenizer, [augment(text, recipe.augment, chance) for text in texts], recipe.max_tokens)
        batches = shared_out(
            bucketed(encoded.lengths, recipe.batch_size, chance), accelerator.process_index, accelerator.num_processes
        )
        self.model.train()
        started = saved = time.monotonic()
        while progress.step < len(batches):
            indices = batches[progress.step]
            self._set_learning_rate((progress.epoch + progress.step / len(batches)) / recipe.epochs)
            loss = self._loss(encoded, indices, targets[indices])
            if not torch.isfinite(loss):
                raise ArithmeticError(
                    f"the loss is {loss.item()} in epoch {progress.epoch + 1}: lower the learning rate"
                )
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.optimizer.zero_grad()
            progress.step += 1
            progress.loss += (float(loss.detach()) - progress.loss) / min(progress.step, 50)
            now = time.monotonic()
            progress.seconds, started = progress.seconds + now - started, now
            if now - saved > self.save_every_s and accelerator.num_processes == 1:
                # Clocks differ between processes; with several, only the end of an epoch is a common moment.
                self._save()
                saved = now
            report(progress, len(batches))

    def _loss(self, encoded: Encoded, indices: Sequence[int], targets: torch.Tensor) -> torch.Tensor:
        batch = encoded.batch(indices, self.accelerator.device)
        if self.distillation is None:
            loss: torch.Tensor = self.loss(self.model(**batch).logits.float(), targets)
            return loss
        student = answers(self.model, batch)
        return self.distillation.mix(self.loss(student.logits, targets), student, encoded, indices)

    def _set_learning_rate(self, done: float) -> None:
        """Linear warm-up and decay over the whole run; ``done`` is the share of it that lies behind."""
        warmup = self.recipe.warmup
        factor = done / warmup if done < warmup else (1 - done) / (1 - warmup)
        for group in self.optimizer.param_groups:
            group["lr"] = group["peak"] * factor

    def _validate(self, encoded: Encoded, truth: np.ndarray[Any, Any]) -> None:
        """Score the epoch on one process, tell the others, keep the weights if they are the best, save."""
        progress, accelerator = self.progress, self.accelerator
        score = [0.0]
        if accelerator.is_main_process:
            model = accelerator.unwrap_model(self.model)
            logits = predict(model, encoded, accelerator.device)
            score = [macro_f1(logits.argmax(axis=1), truth)]
            if score[0] > progress.best_score:
                torch.save(model.state_dict(), self.state / "best.new")
                (self.state / "best.new").replace(self.state / "best.pt")
        broadcast_object_list(score)
        progress.history.append({"epoch": progress.epoch, "loss": progress.loss, "macro_f1": score[0]})
        if score[0] > progress.best_score:
            progress.best_score, progress.best_epoch = score[0], progress.epoch
        progress.epoch, progress.step = progress.epoch + 1, 0
        self._save()

    def _save(self) -> None:
        """Write the state beside the last one and swap them, so that a kill at any moment leaves one that is whole."""
        new, last, old = (self.state / name for name in ("new", "last", "old"))
        self.accelerator.save_state(str(new))
        self.accelerator.wait_for_everyone()
        if self.accelerator.is_main_process:
            shutil.rmtree(old, ignore_errors=True)
            if last.is_dir():
                last.rename(old)
            new.rename(last)
            shutil.rmtree(old, ignore_errors=True)
        self.accelerator.wait_for_everyone()
