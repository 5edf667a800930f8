"""Where a service's bundle comes from: what was there at the start is what every worker serves, as it was."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from app.bundle import Bundle, write_manifest
from tests.app.service.bundles import make_null_bundle
from tests.app.service.conftest import Start
from tests.app.service.running import wait_until
from tests.s3 import S3
from tests.s3 import s3 as s3

Make = Callable[[str], Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A bundle of the version that is said, beside the others."""

    def make_version(version: str) -> Path:
        path = make_null_bundle(tmp_path / f"bundle-{version}", buckets=(32,))
        write_manifest(path, Bundle(path).manifest.model_copy(update={"version": version}))
        return path

    return make_version


def test_a_worker_that_starts_anew_serves_what_it_served_though_the_folder_is_another(start: Start, make: Make) -> None:
    bundle = make("1")
    service = start(bundle=bundle).wait_ready()
    shutil.rmtree(bundle)
    shutil.move(make("2"), bundle)

    os.kill(service.worker_pids[0], signal.SIGKILL)
    wait_until(lambda: len(service.worker_pids) == 2)

    assert service.wait_ready().classify("red shoes", timeout_ms=10_000).json()["model"] == "tiny@1"


def test_a_model_from_s3_is_served_and_its_copy_ends_with_the_service(start: Start, s3: S3, make: Make) -> None:
    address = s3.upload(make("1"), "tiny")
    service = start(bundle=address).wait_ready()
    copies = list(Path(os.environ.get("TMPDIR", "/tmp")).glob(f"query-intent-{service.process.pid}-*"))

    assert service.classify("red shoes", timeout_ms=10_000).json()["model"] == "tiny@1"
    assert service.get("/v1/model").json()["settings"]["bundle"] == address
    assert service.records_of("starting")[0]["bundle"] == address
    service.process.terminate()
    assert service.wait_exit() == 0
    assert copies
    assert not any(copy.exists() for copy in copies)


def test_a_start_with_another_model_than_the_pinned_one_is_refused(start: Start, s3: S3, make: Make) -> None:
    address = s3.upload(make("1"), "tiny")
    s3.upload(make("2"), "tiny")
    service = start(bundle=address)

    assert service.wait_exit() == 1
    (line,) = service.plain_lines
    assert line.startswith(f"query-intent: bundle {address}: bundle.json there has sha256 ")
    assert not service.worker_pids
