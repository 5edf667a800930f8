"""Taking a bundle: what is kept is whole and what was asked for, or nothing is kept at all."""

from __future__ import annotations

import asyncio
import json
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.bundle import EMBEDDINGS, MANIFEST, TOKENIZER, Bundle, sha256
from app.errors import BundleError
from app.releases import Release, Releases
from tests.tiny_bundle import make_tiny_bundle, rewrite

Copy = Callable[[], Path]


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    (tmp_path / "kept").mkdir()
    return tmp_path / "kept"


def take(kept: Path, bundle: Path | str) -> Release:
    return asyncio.run(Releases(kept).take(str(bundle)))


def refused(kept: Path, bundle: Path | str) -> str:
    """The reason; nothing may be left of the attempt."""
    before = sorted(kept.rglob("*"))
    with pytest.raises(BundleError) as caught:
        take(kept, bundle)
    assert sorted(kept.rglob("*")) == before
    return str(caught.value)


def test_what_is_taken_is_the_bundle_under_its_digest(tiny_bundle: Path, kept: Path) -> None:
    release = take(kept, tiny_bundle)

    assert release == Release(str(tiny_bundle), sha256(tiny_bundle / MANIFEST), kept / release.digest)
    assert Bundle(release.path).name == "tiny@1"
    assert list(kept.iterdir()) == [release.path]


def test_a_bundle_that_changes_later_does_not_change_what_was_taken(copy_bundle: Copy, kept: Path) -> None:
    bundle = copy_bundle()
    first = take(kept, bundle)
    shutil.rmtree(bundle)
    make_tiny_bundle(bundle, version="2")

    second = take(kept, bundle)

    assert [Bundle(release.path).name for release in (first, second)] == ["tiny@1", "tiny@2"]


def test_what_is_kept_already_is_not_taken_again(copy_bundle: Copy, kept: Path) -> None:
    bundle = copy_bundle()
    first = take(kept, bundle)
    (bundle / EMBEDDINGS).unlink()

    assert take(kept, bundle) == first


def test_a_dropped_release_leaves_nothing(tiny_bundle: Path, kept: Path) -> None:
    Releases(kept).drop(take(kept, tiny_bundle))

    assert not list(kept.iterdir())


def test_a_file_may_name_the_bundle(tiny_bundle: Path, kept: Path, tmp_path: Path) -> None:
    pointer = tmp_path / "bundle"
    pointer.write_text(f"{tiny_bundle}\nwhatever else is noted there\n")

    assert take(kept, pointer).address == str(tiny_bundle)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("", "its first line is '', which is no folder and no address in S3"),
        ("/nowhere", "its first line is '/nowhere', which is no folder and no address in S3"),
        ("s3://bucket/prefix", "its first line is 's3://bucket/prefix'; a bundle in S3 is s3://BUCKET/PREFIX#sha256="),
    ],
)
def test_a_file_that_names_none_says_so(kept: Path, tmp_path: Path, line: str, reason: str) -> None:
    (tmp_path / "bundle").write_text(line)

    said = refused(kept, tmp_path / "bundle")

    assert said.startswith(f"bundle {tmp_path / 'bundle'}: {reason}")


def test_a_link_is_followed_once(copy_bundle: Copy, kept: Path, tmp_path: Path) -> None:
    link = tmp_path / "current"
    link.symlink_to(copy_bundle())
    first = take(kept, link)
    link.unlink()
    link.symlink_to(make_tiny_bundle(tmp_path / "next", version="2"))
    second = take(kept, link)

    assert [Bundle(release.path).name for release in (first, second)] == ["tiny@1", "tiny@2"]


def test_a_folder_without_a_bundle_is_named(kept: Path, tmp_path: Path) -> None:
    said = refused(kept, tmp_path / "nothing")
    assert said == f"bundle {tmp_path / 'nothing'}: {MANIFEST} can't be read: No such file or directory"


def test_a_missing_file_and_a_damaged_one_are_named(copy_bundle: Copy, kept: Path) -> None:
    bundle = copy_bundle()
    (bundle / TOKENIZER).write_text("{}")
    assert f"bundle {bundle}: {TOKENIZER} has sha256 " in refused(kept, bundle)
    (bundle / TOKENIZER).unlink()
    assert refused(kept, bundle) == f"bundle {bundle}: {TOKENIZER} is missing"


@pytest.mark.parametrize("name", ["../outside", "/etc/hostname", "cpu/../../outside", ""])
def test_no_file_outside_of_the_bundle_is_touched(copy_bundle: Copy, kept: Path, name: str) -> None:
    bundle = copy_bundle()
    rewrite(bundle, files={name: "0" * 64})

    assert f"lists {name!r}, which is not inside of the bundle" in refused(kept, bundle)


@pytest.mark.parametrize("manifest", ["", "[]", '{"files": []}', "{}", '{"files": 3}', "\x00"])
def test_what_is_no_manifest_is_named(kept: Path, tmp_path: Path, manifest: str) -> None:
    (tmp_path / MANIFEST).write_text(manifest)

    assert refused(kept, tmp_path) == f"bundle {tmp_path}: {MANIFEST} lists no files; is it a bundle's?"


def test_without_room_the_place_is_named(tiny_bundle: Path, kept: Path) -> None:
    """The limit on a file's size stands for a disk that is full: the system refuses to write either way."""
    largest = max(file.stat().st_size for file in tiny_bundle.rglob("*"))
    with no_file_over(largest - 1):
        said = refused(kept, tiny_bundle)

    assert said == f"bundle {tiny_bundle}: can't be kept in {kept}: File too large"


@contextmanager
def no_file_over(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_the_list_of_files_is_read_without_what_serves_a_model() -> None:
    """The supervisor takes bundles, and does without numpy."""
    code = "import sys, app.supervisor; print(sorted({'numpy', 'obstore', 'safetensors'} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.replace("'", '"')) == []
