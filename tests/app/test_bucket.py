"""A bundle in S3, over moto's server: what is read, and what is said when it can't be."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from app.bundle import EMBEDDINGS, MANIFEST, TOKENIZER, Bundle
from app.errors import BundleError
from app.releases import Release, Releases
from tests.s3 import BUCKET, NOWHERE, S3
from tests.s3 import s3 as s3

Copy = Callable[[], Path]


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    (tmp_path / "kept").mkdir()
    return tmp_path / "kept"


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a test, which needs no second try."""
    monkeypatch.setattr("app.bucket.RETRIES", 0)


def take(kept: Path, bundle: Path | str) -> Release:
    return asyncio.run(Releases(kept).take(str(bundle)))


def refused(kept: Path, address: str) -> str:
    with pytest.raises(BundleError) as caught:
        take(kept, address)
    assert not list(kept.iterdir())
    said = str(caught.value)
    assert said.startswith(f"bundle {address}: ")
    assert "\n" not in said
    return said


def test_a_bundle_is_fetched_whole(s3: S3, tiny_bundle: Path, kept: Path) -> None:
    address = s3.upload(tiny_bundle, "query-intent/tiny-1")
    release = take(kept, address)

    assert (release.address, address.rpartition("=")[2]) == (address, release.digest)
    assert Bundle(release.path).name == "tiny@1"
    assert {path.relative_to(tiny_bundle) for path in tiny_bundle.rglob("*")} == {
        path.relative_to(release.path) for path in release.path.rglob("*")
    }


def test_another_bundle_than_the_pinned_one_is_refused_with_both_digests(s3: S3, tiny_bundle: Path, kept: Path) -> None:
    address = s3.upload(tiny_bundle, "a")
    there = address.rpartition("=")[2]
    pinned = address.replace(there, "0a" * 32)

    assert refused(kept, pinned) == f"bundle {pinned}: {MANIFEST} there has sha256 {there}, not {'0a' * 32}"


def test_a_damaged_file_and_a_missing_one_are_named_and_nothing_is_kept(s3: S3, tiny_bundle: Path, kept: Path) -> None:
    address = s3.upload(tiny_bundle, "a")
    s3.put(f"a/{EMBEDDINGS}", b"half of it")
    assert f"{EMBEDDINGS} has sha256 " in refused(kept, address)
    s3.upload(tiny_bundle, "a")
    s3.delete(f"a/{TOKENIZER}")
    assert f"there is no {TOKENIZER}: " in refused(kept, address)


@pytest.mark.parametrize("old", [f"{BUCKET}/a", "/a#"])
def test_a_bucket_and_a_prefix_that_are_not_there_are_named(s3: S3, tiny_bundle: Path, kept: Path, old: str) -> None:
    address = s3.upload(tiny_bundle, "a").replace(old, old.replace("a", "elsewhere"))

    assert f"there is no {MANIFEST}: " in refused(kept, address)


def test_a_role_without_permission_is_told_what_it_needs(s3: S3, tiny_bundle: Path, kept: Path) -> None:
    address = s3.upload(tiny_bundle, "a")
    s3.forbid()

    assert f"may not read {MANIFEST}, which takes s3:GetObject" in refused(kept, address)


def test_without_credentials_it_says_where_they_were_looked_for(
    s3: S3, tiny_bundle: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = s3.upload(tiny_bundle, "a")
    for name in os.environ:
        if name.startswith("AWS_") and name not in ("AWS_ENDPOINT_URL", "AWS_METADATA_ENDPOINT"):
            monkeypatch.delenv(name)

    assert "no credentials: none in the environment, no role of a task or an instance: " in refused(kept, address)


def test_a_service_that_does_not_answer_is_named(
    s3: S3, tiny_bundle: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = s3.upload(tiny_bundle, "a")
    monkeypatch.setenv("AWS_ENDPOINT_URL", NOWHERE)

    assert f"{MANIFEST} can't be read: " in refused(kept, address)
