"""A bundle's fallback: read and checked as the rest of it, ranked and corrected for priors as the model is."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from app.bundle import Bundle, write_manifest
from app.engine import Engine
from app.errors import BundleError
from app.fallback import FOLDER, MANIFEST, WEIGHTS, Fallback, has_fallback
from tests.tiny_fallback import HELP_THRESHOLD, KNOWN, THRESHOLD, add_fallback


@pytest.fixture
def bundle(copy_bundle: Callable[[], Path]) -> Path:
    return add_fallback(copy_bundle())


@pytest.mark.parametrize(("word", "intent"), KNOWN.items())
def test_it_ranks_the_bundle_s_intents_and_groups(bundle: Path, word: str, intent: str) -> None:
    intents, groups = Fallback(Bundle(bundle)).answer(f"the {word}")
    labels = Bundle(bundle).manifest.labels
    assert intents[0][0] == intent
    assert groups[0][0] == next(label.group for label in labels if label.name == intent)
    assert {name for name, _ in intents} == {label.name for label in labels}
    assert sum(confidence for _, confidence in intents) == pytest.approx(1, abs=1e-5)


def test_its_confidence_is_its_own_temperature_s(copy_bundle: Callable[[], Path]) -> None:
    path = copy_bundle()
    sure, unsure = (
        Fallback(Bundle(add_fallback(path, temperature=temperature))).answer("shoes") for temperature in (0.5, 4.0)
    )
    assert sure.intents[0][1] > unsure.intents[0][1] > 1 / 9


def test_probabilities_of_many_are_those_of_each(bundle: Path) -> None:
    fallback = Fallback(Bundle(bundle))
    both = fallback.probabilities(["shoes", "film"])
    assert both.shape == (2, 9)
    assert np.array_equal(both[1:], fallback.probabilities(["film"]))


def test_the_deployment_s_priors_correct_it_as_they_do_the_model(bundle: Path, tmp_path: Path) -> None:
    manifest = Bundle(bundle).manifest
    shares = {label.name: 1.0 for label in manifest.labels} | {"contact": 100.0}
    (tmp_path / "priors.json").write_text(json.dumps(shares))
    plain, corrected = (_engine(bundle, priors=priors).fallback for priors in (None, tmp_path / "priors.json"))
    assert plain is not None
    assert corrected is not None
    before, after = (dict(fallback.answer("something").intents) for fallback in (plain, corrected))
    assert plain.thresholds.groups["help"] == HELP_THRESHOLD < corrected.thresholds.groups["help"] < 1
    assert corrected.describe()["group_thresholds"] == corrected.thresholds.groups
    assert after["contact"] / after["media"] == pytest.approx(100 * before["contact"] / before["media"], rel=0.01)


def _engine(path: Path, *, fallback: bool = True, priors: Path | None = None) -> Engine:
    return Engine(Bundle(path), "null", replicas=1, slo_s=0.01, queue_tokens=1024, priors=priors, fallback=fallback)


def test_an_engine_has_it_only_if_asked(bundle: Path) -> None:
    found = _engine(bundle).fallback
    assert found is not None
    assert found.manifest.abstain_threshold == THRESHOLD
    assert _engine(bundle, fallback=False).fallback is None


def test_a_bundle_without_one_is_served_and_says_what_that_means(
    tiny_bundle: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert _engine(tiny_bundle).fallback is None
    (record,) = caplog.records
    assert record.message == "the bundle has no fallback: a query that the model can't answer in time is refused"
    with pytest.raises(BundleError, match="has no fallback; make it with: query-intent compile --target fallback"):
        Fallback(Bundle(tiny_bundle))


def test_it_is_no_target(bundle: Path, tiny_bundle: Path) -> None:
    assert has_fallback(Bundle(bundle))
    assert not has_fallback(Bundle(tiny_bundle))
    assert Bundle(bundle).targets == Bundle(tiny_bundle).targets


def test_its_files_are_checked_like_all_others(bundle: Path) -> None:
    for name in (MANIFEST, WEIGHTS):
        content = (bundle / FOLDER / name).read_bytes()
        (bundle / FOLDER / name).write_bytes(content[:-1] + b" ")
        with pytest.raises(BundleError, match=rf"{FOLDER}/{name} has sha256"):
            Bundle(bundle)
        (bundle / FOLDER / name).write_bytes(content)


def test_features_of_another_version_are_refused(copy_bundle: Callable[[], Path]) -> None:
    path = add_fallback(copy_bundle(), features=2)
    with pytest.raises(BundleError, match=r"fallback\.json: features: .*of version 2, this version has 1"):
        Fallback(Bundle(path))


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("weights", np.zeros((16, 8), np.int8)),
        ("weights", np.zeros(9, np.int8)),
        ("scale", np.zeros(8, np.float32)),
        ("bias", np.zeros((), np.float32)),
    ],
)
def test_weights_for_other_labels_are_refused(copy_bundle: Callable[[], Path], name: str, wrong: NDArray[Any]) -> None:
    """At the start, not when the first query needs an answer."""
    path = add_fallback(copy_bundle())
    manifest, weights = Bundle(path).manifest, path / FOLDER / WEIGHTS
    save_file(load_file(weights) | {name: wrong}, weights)
    write_manifest(path, manifest)
    with pytest.raises(BundleError, match=rf"{name} \[.*\] in fallback/weights\.safetensors are not for its 9 labels"):
        Fallback(Bundle(path))
