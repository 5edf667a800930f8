"""A traced classifier is read as the Hugging Face folder it was traced from, or refused with a reason."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="compiling needs torch")

import torch

from models.architectures import UnsupportedCheckpoint
from models.checkpoint import CheckpointError
from models.compiling.reference import Reference
from models.compiling.source import TRACED, read_source
from tests.tiny_models import CONFIGS, LABELS, make_classifier, save_checkpoint, solve_head

# Tracing warns: of its own age, of each constant that it takes from the example, of attributes that it looks at.
pytestmark = pytest.mark.filterwarnings("ignore")

TEXTS = ["lamp", "song film", "refund parcel", "desk"]


class Wrapped(torch.nn.Module):
    """As deployment scripts wrap a model: another name in front, logits only."""

    def __init__(self, model: Any, as_tuple: bool = False) -> None:
        super().__init__()
        self.classifier_model = model
        self.as_tuple = as_tuple

    def forward(self, input_ids: Any, attention_mask: Any) -> Any:
        logits = self.classifier_model(input_ids=input_ids, attention_mask=attention_mask).logits
        return (logits,) if self.as_tuple else logits


def trace(folder: Path, architecture: str = "bert", *, length: int = 32, as_tuple: bool = False) -> Path:
    """A folder with ``cpu_model.pt`` in place of the weights."""
    save_checkpoint(folder, architecture)
    model = make_classifier(architecture)
    solve_head(model)
    example = (torch.full((1, length), 5), torch.ones(1, length, dtype=torch.int64))
    traced = torch.jit.trace(Wrapped(model, as_tuple).eval(), example)
    torch.jit.save(traced, str(folder / TRACED))
    (folder / "model.safetensors").rename(folder / "original.safetensors")
    return folder


@pytest.mark.parametrize("architecture", list(CONFIGS))
def test_it_gives_the_answers_of_the_folder_it_was_traced_from(tmp_path: Path, architecture: str) -> None:
    traced = read_source(trace(tmp_path / "traced", architecture))
    original = read_source(save_checkpoint(tmp_path / "original", architecture))
    assert [label.name for label in traced.labels] == LABELS
    assert "couldn't be proved" not in " ".join(traced.assumed)
    answers = [Reference(source).probabilities(TEXTS) for source in (traced, original)]
    np.testing.assert_array_equal(*answers)


class TestOneFile:
    @pytest.fixture(scope="class")
    def traced(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        return trace(tmp_path_factory.mktemp("traced") / "tiny", as_tuple=True)

    def test_the_file_itself_may_be_named(self, traced: Path, tmp_path: Path) -> None:
        """Also one of another name, with its config.json elsewhere."""
        copy = shutil.copytree(traced, tmp_path / "copy")
        (copy / TRACED).rename(copy / "shop.pt")
        (copy / "config.json").rename(tmp_path / "shop.json")
        source = read_source(copy / "shop.pt", config=tmp_path / "shop.json")
        assert source.converted.architecture == "bert"
        with pytest.raises(CheckpointError, match=r"config\.json: can't be read"):
            read_source(copy / "shop.pt")

    def test_settings_of_another_model_are_refused(self, traced: Path, tmp_path: Path) -> None:
        """The number of heads shows in no tensor's shape."""
        written = json.loads((traced / "config.json").read_text())
        (tmp_path / "config.json").write_text(json.dumps(written | {"num_attention_heads": 4}))
        with pytest.raises(CheckpointError, match=r"its logits differ by .* config\.json isn't this model's"):
            read_source(traced, config=tmp_path / "config.json")

    def test_layers_that_config_lacks_are_refused(self, traced: Path, tmp_path: Path) -> None:
        written = json.loads((traced / "config.json").read_text())
        (tmp_path / "config.json").write_text(json.dumps(written | {"num_hidden_layers": 1}))
        with pytest.raises(UnsupportedCheckpoint, match=r"has no place for the tensors bert\.encoder\.layer\.1"):
            read_source(traced, config=tmp_path / "config.json")

    def test_another_architecture_is_refused(self, traced: Path, tmp_path: Path) -> None:
        CONFIGS["distilbert"].save_pretrained(tmp_path)
        with pytest.raises(
            CheckpointError, match=r"so it's no distilbert as config\.json says .*classifier_model\.bert"
        ):
            read_source(traced, config=tmp_path / "config.json")

    def test_no_pickle_is_loaded(self, traced: Path, tmp_path: Path) -> None:
        copy = shutil.copytree(traced, tmp_path / "copy")
        torch.save(make_classifier("bert"), copy / TRACED)
        with pytest.raises(CheckpointError, match="is no TorchScript"):
            read_source(copy)

    def test_a_frozen_module_has_no_names(self, traced: Path, tmp_path: Path) -> None:
        copy = shutil.copytree(traced, tmp_path / "copy")
        frozen = torch.jit.freeze(torch.jit.load(str(copy / TRACED)).eval())
        torch.jit.save(frozen, str(copy / TRACED))
        with pytest.raises(CheckpointError, match="a frozen module has no names left"):
            read_source(copy)


def test_a_length_that_nobody_uses_is_said(tmp_path: Path) -> None:
    class Stubborn(Wrapped):
        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            logits = super().forward(input_ids, attention_mask)
            return logits + (input_ids * torch.zeros(1, 31, dtype=torch.int64)).sum()

    folder = save_checkpoint(tmp_path / "tiny")
    example = (torch.full((1, 31), 5), torch.ones(1, 31, dtype=torch.int64))
    torch.jit.save(torch.jit.trace(Stubborn(make_classifier("bert")).eval(), example), str(folder / TRACED))
    remark = read_source(folder / TRACED).assumed[-1]
    assert remark == "cpu_model.pt runs at none of the usual lengths, so config.json couldn't be proved on it"
