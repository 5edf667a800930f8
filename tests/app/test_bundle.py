"""A bundle on disk: what runs is what was released, or the start stops with the reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from app.bundle import Bundle, Label, Manifest, TargetManifest, sha256, write_embeddings, write_manifest
from app.errors import BundleError
from app.text import NORMALISER_VERSION
from models.labels import GROUPS, LABELS
from tests.tiny_bundle import BUCKETS, EMBEDDING_SIZE, GOLDEN, MAX_TOKENS, VOCABULARY, make_tiny_bundle, rewrite

Copy = Callable[[], Path]


def seal(path: Path) -> None:
    """Make the digests fit what is there: damage from here on is of the maker's hand, not of the way."""
    document = json.loads((path / "bundle.json").read_bytes())
    document["files"] = {name: sha256(path / name) for name in document["files"]}
    (path / "bundle.json").write_text(json.dumps(document), encoding="utf-8")


def rewrite_target(path: Path, **changes: Any) -> None:
    file = path / "fake" / "target.json"
    file.write_text(json.dumps(json.loads(file.read_bytes()) | changes), encoding="utf-8")
    seal(path)


class TestAWholeBundle:
    def test_it_says_what_it_is(self, tiny_bundle: Path) -> None:
        bundle = Bundle(tiny_bundle)
        assert bundle.name == "tiny@1"
        assert bundle.targets == ["fake"]
        assert repr(bundle) == f"<Bundle tiny@1 at {tiny_bundle}: targets fake>"
        assert bundle.digest == sha256(tiny_bundle / "bundle.json")
        assert [golden.query for golden in bundle.manifest.golden] == list(GOLDEN)

    def test_groups_are_in_the_order_in_which_labels_name_them(self, tiny_bundle: Path) -> None:
        manifest = Bundle(tiny_bundle).manifest
        assert [label.name for label in manifest.labels] == [label.name for label in LABELS]
        assert manifest.groups == list(GROUPS)

    def test_its_target_says_how_it_was_compiled(self, tiny_bundle: Path) -> None:
        target = Bundle(tiny_bundle).target("fake")
        assert (target.target, target.buckets, target.one_query_a_row) == ("fake", BUCKETS, False)

    def test_embeddings_are_stored_in_half_and_served_in_full_precision(self, tiny_bundle: Path) -> None:
        embeddings = Bundle(tiny_bundle).embeddings()
        assert embeddings.word.shape == (len(VOCABULARY), EMBEDDING_SIZE)
        assert embeddings.position.shape == (MAX_TOKENS, EMBEDDING_SIZE)
        assert embeddings.word.dtype == embeddings.position.dtype == np.float32
        assert (embeddings.word == embeddings.word.astype(np.float16)).all()

    def test_the_manifest_holds_the_digest_of_every_file_but_its_own(self, tiny_bundle: Path) -> None:
        assert sorted(Bundle(tiny_bundle).manifest.files) == [
            "embeddings.safetensors",
            "fake/target.json",
            "tokenizer.json",
        ]

    def test_making_it_again_gives_the_same_bytes(self, tiny_bundle: Path, tmp_path: Path) -> None:
        again = make_tiny_bundle(tmp_path / "again")
        assert Bundle(again).digest == Bundle(tiny_bundle).digest

    def test_a_folder_that_holds_another_target_is_refused(self, copy_bundle: Copy) -> None:
        """Compiled for Inferentia 2 and put where Inferentia 1's is looked for, say."""
        path = copy_bundle()
        (path / "fake").rename(path / "other")
        write_manifest(path, _manifest(path))
        with pytest.raises(BundleError, match="folder other holds what was compiled for target fake, which can't"):
            Bundle(path).target("other")

    def test_one_without_targets_loads_and_says_so(self, copy_bundle: Copy) -> None:
        path = copy_bundle()
        (path / "fake" / "target.json").unlink()
        write_manifest(path, _manifest(path))
        bundle = Bundle(path)
        assert bundle.targets == []
        assert "targets none" in repr(bundle)
        with pytest.raises(BundleError, match=r"has no target 'cpu', only none; make it with: query-intent compile"):
            bundle.target("cpu")


def _manifest(path: Path) -> Manifest:
    return Manifest.model_validate_json((path / "bundle.json").read_bytes())


class TestADamagedBundle:
    def test_a_folder_without_a_manifest_is_none(self, tmp_path: Path) -> None:
        with pytest.raises(BundleError, match=r"bundle\.json can't be read: No such file"):
            Bundle(tmp_path)

    @pytest.mark.parametrize("name", ["tokenizer.json", "embeddings.safetensors", "fake/target.json"])
    def test_a_missing_file_is_named(self, copy_bundle: Copy, name: str) -> None:
        path = copy_bundle()
        (path / name).unlink()
        with pytest.raises(BundleError, match=f"{name} is missing"):
            Bundle(path)

    @pytest.mark.parametrize("name", ["tokenizer.json", "embeddings.safetensors", "fake/target.json"])
    def test_a_changed_file_is_named_with_both_digests(self, copy_bundle: Copy, name: str) -> None:
        path = copy_bundle()
        released = sha256(path / name)
        with (path / name).open("ab") as file:
            file.write(b" ")
        with pytest.raises(BundleError) as refusal:
            Bundle(path)
        changed = sha256(path / name)
        assert str(refusal.value) == (
            f"bundle {path}: {name} has sha256 {changed[:12]}…, not {released[:12]}… as released"
        )

    @pytest.mark.parametrize("name", ["tokenizer.json", "embeddings.safetensors"])
    def test_a_manifest_that_does_not_list_what_serving_needs_is_refused(self, copy_bundle: Copy, name: str) -> None:
        path = copy_bundle()
        files = {listed: digest for listed, digest in _manifest(path).files.items() if listed != name}
        rewrite(path, files=files)
        with pytest.raises(BundleError, match=rf"bundle\.json lists no {name}"):
            Bundle(path)

    @pytest.mark.parametrize("text", ["", "{", "[]", "null", "{}"])
    def test_a_manifest_that_is_not_its_json_is_refused(self, copy_bundle: Copy, text: str) -> None:
        path = copy_bundle()
        (path / "bundle.json").write_text(text, encoding="utf-8")
        with pytest.raises(BundleError, match=r"bundle\.json: "):
            Bundle(path)

    def test_one_label_too_few_is_told_by_name(self, copy_bundle: Copy) -> None:
        path = copy_bundle()
        rewrite(path, labels=[label.model_dump() for label in _manifest(path).labels[:-1]])
        with pytest.raises(BundleError, match=r"label_priors: has .*'other'.*, labels are "):
            Bundle(path)

    def test_one_label_too_few_beside_priors_that_fit_shows_in_the_golden_queries(self, copy_bundle: Copy) -> None:
        path = copy_bundle()
        manifest = _manifest(path)
        labels = [label.model_dump() for label in manifest.labels[:-1]]
        rewrite(path, labels=labels, label_priors={label["name"]: 0.1 for label in labels})
        with pytest.raises(BundleError, match=r"golden query 'usb c cable': 9 probabilities for 8 labels"):
            Bundle(path)

    @pytest.mark.parametrize("version", [0, NORMALISER_VERSION - 1, NORMALISER_VERSION + 1])
    def test_another_normaliser_asks_for_training_anew(self, copy_bundle: Copy, version: int) -> None:
        path = copy_bundle()
        rewrite(path, normaliser=version)
        with pytest.raises(BundleError, match=f"made for normaliser {version}, this version has {NORMALISER_VERSION}"):
            Bundle(path)

    @pytest.mark.parametrize(
        ("changes", "reason"),
        [
            ({"format": 2}, "format: "),
            ({"task": "duplicates"}, "task: "),
            ({"name": "Not A Name"}, "name: "),
            ({"version": ""}, "version: "),
            ({"max_tokens": 2}, "max_tokens: "),
            ({"max_tokens": 513}, "max_tokens: "),
            ({"pooling": "max"}, "pooling: "),
            ({"temperature": 0}, "temperature: "),
            ({"abstain_threshold": 1.1}, "abstain_threshold: "),
            ({"group_thresholds": {"help": 1.1}}, "group_thresholds"),
            ({"group_thresholds": {"helper": 0.5}}, r".*group_thresholds: has \['helper'\]"),
            ({"labels": []}, "labels: "),
            ({"golden": []}, "golden: "),
            ({"surprise": 1}, "surprise: "),
        ],
    )
    def test_a_field_out_of_its_limits_is_named(self, copy_bundle: Copy, changes: dict[str, Any], reason: str) -> None:
        path = copy_bundle()
        rewrite(path, **changes)
        with pytest.raises(BundleError, match=rf"bundle\.json: {reason}"):
            Bundle(path)

    def test_embeddings_that_are_not_safetensors_are_refused(self, copy_bundle: Copy) -> None:
        path = copy_bundle()
        (path / "embeddings.safetensors").write_bytes(b"nonsense")
        seal(path)
        with pytest.raises(BundleError, match=r"embeddings\.safetensors can't be read"):
            Bundle(path).embeddings()

    def test_embeddings_without_positions_are_refused(self, copy_bundle: Copy) -> None:
        from safetensors.numpy import save_file

        path = copy_bundle()
        save_file({"word": np.zeros((3, 4), np.float16)}, path / "embeddings.safetensors")
        seal(path)
        with pytest.raises(BundleError, match=r"can't be read: 'position'"):
            Bundle(path).embeddings()

    @pytest.mark.parametrize(
        ("positions", "fits"), [(MAX_TOKENS - 1, False), (MAX_TOKENS, True), (MAX_TOKENS + 1, True)]
    )
    def test_there_must_be_a_position_for_every_token_of_the_longest_query(
        self, copy_bundle: Copy, positions: int, fits: bool
    ) -> None:
        path = copy_bundle()
        write_embeddings(path, word=np.zeros((9, 4)), position=np.zeros((positions, 4)))
        seal(path)
        if fits:
            Bundle(path).embeddings()
        else:
            with pytest.raises(BundleError, match=f"{positions} positions, max_tokens is {MAX_TOKENS}"):
                Bundle(path).embeddings()

    @pytest.mark.parametrize(
        ("changes", "reason"),
        [
            ({"buckets": []}, "target.json: buckets: "),
            ({"buckets": [2, 64]}, r"target.json: buckets\.0: "),
            ({"buckets": [64, 32]}, r"must rise, got \[64, 32\]"),
            ({"buckets": [64, 64]}, r"must rise, got \[64, 64\]"),
            ({"buckets": [MAX_TOKENS - 1]}, f"largest bucket {MAX_TOKENS - 1} is under max_tokens {MAX_TOKENS}"),
            ({"tolerance": -0.1}, "target.json: tolerance: "),
            ({"surprise": 1}, "target.json: surprise: "),
        ],
    )
    def test_a_target_that_can_not_serve_is_refused(
        self, copy_bundle: Copy, changes: dict[str, Any], reason: str
    ) -> None:
        path = copy_bundle()
        rewrite_target(path, **changes)
        with pytest.raises(BundleError, match=reason):
            Bundle(path).target("fake")

    def test_a_bucket_of_exactly_the_longest_query_will_do(self, copy_bundle: Copy) -> None:
        path = copy_bundle()
        rewrite_target(path, buckets=[MAX_TOKENS])
        assert Bundle(path).target("fake").buckets == [MAX_TOKENS]

    def test_a_target_that_is_not_there_says_which_are_and_how_to_make_it(self, tiny_bundle: Path) -> None:
        with pytest.raises(BundleError, match=r"no target 'cpu', only fake; make it with: .* compile --target cpu"):
            Bundle(tiny_bundle).target("cpu")


def test_labels_of_one_name_are_refused(tiny_bundle: Path) -> None:
    manifest = _manifest(tiny_bundle)
    twice = [*manifest.labels, Label(name="media", definition="again", group="media")]
    with pytest.raises(ValidationError, match="a name occurs twice"):
        Manifest(**(manifest.model_dump() | {"labels": [label.model_dump() for label in twice]}))


def test_what_was_read_can_not_be_changed(tiny_bundle: Path) -> None:
    with pytest.raises(ValidationError, match="frozen"):
        _manifest(tiny_bundle).name = "other"  # type: ignore[misc]
    with pytest.raises(ValidationError, match="frozen"):
        TargetManifest(target="x", engine={}, precision="int8", buckets=[8], tolerance=0).precision = "fp32"  # type: ignore[misc]
