"""What the engine makes of its settings; that it loads, answers and closes is tested on a whole service."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from app.bundle import Bundle
from app.engine import Engine
from app.sharing import SharingClassifier
from models.labels import LABELS
from tests.tiny_bundle import make_tiny_bundle

LIMITS: dict[str, Any] = {"replicas": 1, "slo_s": 0.01, "queue_tokens": 1000}


def key_of(bundle: Path, target: str = "null", **options: Any) -> bytes:
    """What it files the answer to a text under."""
    engine = Engine(Bundle(bundle), target, cache_bytes=65_536, **LIMITS, **options)
    assert engine.cache is not None
    return engine.cache.key("red shoes")


class TestCache:
    def test_without_a_cache_the_path_is_the_plain_one(self, tiny_bundle: Path) -> None:
        plain, sharing = (Engine(Bundle(tiny_bundle), "null", cache_bytes=size, **LIMITS) for size in (0, 65_536))
        assert plain.cache is None
        assert not isinstance(plain.classifier, SharingClassifier)
        assert isinstance(sharing.classifier, SharingClassifier)

    def test_an_answer_never_crosses_to_another_model(self, tiny_bundle: Path, tmp_path: Path) -> None:
        priors = {label.name: 1 / (place + 1) for place, label in enumerate(LABELS)}
        (tmp_path / "priors.json").write_text(json.dumps(priors))
        keys = {
            key_of(tiny_bundle),
            key_of(tiny_bundle, target="fake"),
            key_of(tiny_bundle, priors=tmp_path / "priors.json"),
            key_of(make_tiny_bundle(tmp_path / "newer", version="2")),
            key_of(make_tiny_bundle(tmp_path / "retrained", temperature=1.1)),
        }
        assert len(keys) == 5

    def test_a_copy_of_a_bundle_is_the_same_model(self, tiny_bundle: Path, tmp_path: Path) -> None:
        assert key_of(shutil.copytree(tiny_bundle, tmp_path / "copy")) == key_of(tiny_bundle)
