"""The graph that the peers run is ours: the same answers from a padded batch as the bundle promises of a packed row."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.bundle import Bundle
from app.settings import SHIPPED_BUNDLE
from benchmarks.peers import dense
from benchmarks.peers.engine import Classifier, load
from benchmarks.peers.settings import PeerSettings, Tuning

BUNDLE = Bundle(SHIPPED_BUNDLE)
GOLDEN = {each.query: each.probabilities for each in BUNDLE.manifest.golden}
LABELS = [label.name for label in BUNDLE.manifest.labels]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("dense")
    dense.build(BUNDLE, directory)
    return directory


@pytest.fixture(scope="module")
def classifier(model: Path) -> Classifier:
    return Classifier(model, threads=1, max_batch=4)


def test_a_padded_batch_answers_as_the_bundle_promises(classifier: Classifier) -> None:
    queries = list(GOLDEN)
    answers = [
        answer for start in range(0, len(queries), 3) for answer in classifier.classify(queries[start : start + 3])
    ]
    assert [answer["query"] for answer in answers] == queries
    for answer, promised in zip(answers, GOLDEN.values(), strict=True):
        assert answer["intent"] == LABELS[promised.index(max(promised))]
        assert answer["confidence"] == pytest.approx(max(promised), abs=BUNDLE.target("cpu").tolerance)


def test_the_padding_and_the_neighbours_change_no_answer(classifier: Classifier) -> None:
    short, long = "red shoes", "i need a pair of waterproof hiking boots for women with good ankle support"
    alone = classifier.classify([short])[0]
    for batch in ([short, long], [long, short, long]):
        beside = classifier.classify(batch)[batch.index(short)]
        assert beside["confidence"] == pytest.approx(alone["confidence"], abs=1e-6)


def test_a_query_that_is_too_long_is_cut(classifier: Classifier) -> None:
    assert classifier.classify(["red shoes " * 100])[0]["intent"] in LABELS


def test_a_process_says_that_it_is_warm(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tuning = Tuning(processes=1, threads=1, max_batch=1, wait_ms=1)
    for name, value in PeerSettings(model, tmp_path, 1234, tuning).as_environment().items():
        monkeypatch.setenv(name, value)
    load()
    assert [path.name for path in tmp_path.iterdir()] == [str(os.getpid())]


def test_settings_reach_the_peer_as_they_were_written() -> None:
    settings = PeerSettings(
        Path("/model"), Path("/warm"), 1234, Tuning(processes=2, threads=1, max_batch=16, wait_ms=3)
    )
    assert PeerSettings.from_environment({"HOME": "/root", **settings.as_environment()}) == settings
