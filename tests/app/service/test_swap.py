"""Another model in a running service: SIGHUP brings in what BUNDLE names now, nobody notices, or nothing changes."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from app.bundle import MANIFEST, Bundle, sha256
from app.settings import SHIPPED_BUNDLE
from benchmarks.raw_http import post
from tests import needs
from tests.app.service.conftest import Start
from tests.app.service.load import Clients
from tests.app.service.running import RunningService, is_alive, stopped, wait_until
from tests.app.service.test_bundles import Make
from tests.app.service.test_bundles import make as make
from tests.app.service.test_supervision import Watch
from tests.s3 import S3
from tests.s3 import s3 as s3
from tests.tiny_bundle import rewrite

QUERY = post("/v1/intent", {"query": "red shoes", "timeout_ms": 10_000})


@pytest.fixture
def current(tmp_path: Path, make: Make) -> Path:
    """A link to version 1."""
    link = tmp_path / "current"
    link.symlink_to(make("1"))
    return link


def point(link: Path, bundle: Path) -> None:
    link.with_suffix(".new").symlink_to(bundle)
    link.with_suffix(".new").replace(link)


def swap(service: RunningService) -> dict[str, Any]:
    """The record of it."""
    before = len(service.records_of("bundle swap"))
    service.process.send_signal(signal.SIGHUP)
    return wait_until(lambda: service.records_of("bundle swap")[before:])[0]


def models(service: RunningService) -> set[str]:
    """By several new connections, so that every worker is asked in the end."""
    return {service.classify("red shoes", timeout_ms=10_000).json()["model"] for _ in range(20)}


def test_no_request_is_lost_while_every_worker_is_replaced(start: Start, current: Path, make: Make) -> None:
    """F23: and no total falls, though each worker counts in another place."""
    service = start(bundle=current, workers=2, replicas=1, null_ms=2, keep_alive_s=2).wait_ready()
    before = service.worker_pids
    was = sha256(current / MANIFEST)

    with Clients(service.traffic, 8) as clients, Watch(service) as watch:
        wait_until(lambda: clients.statuses[200] >= 100)
        point(current, make("2"))
        record = swap(service)
        answered = clients.statuses[200]
        wait_until(lambda: clients.statuses[200] >= answered + 100)
        clients.stop()

    assert (record["result"], record["problem"], record["level"]) == ("done", "", "INFO")
    assert (record["from_digest"], record["to_digest"]) == (was, sha256(current / MANIFEST))
    assert (record["from_bundle"], record["to_bundle"]) == (str(current), str(current))
    assert set(clients.statuses) == {200}
    assert (clients.broken, clients.hung) == (0, 0)
    assert set(watch.readiness) == {200}
    assert not [fall for fall in watch.fallen if not fall.startswith("info")]
    assert models(service) == {"tiny@2"}
    assert service.get("/v1/model").json()["digest"] == record["to_digest"]
    assert service.total("info", model="tiny@2") == 1
    assert service.total("info", model="tiny@1") == 0
    assert service.ops("/readyz").json() == {
        "ready": True,
        "reason": "",
        "replicas_ready": 2,
        "replicas": 2,
        "replicas_out": [],
    }
    assert not any(map(is_alive, before))
    assert not [line for line in service.records if line["level"] == "ERROR"]


def test_a_connection_that_idles_meanwhile_is_served_to_its_end(start: Start, current: Path, make: Make) -> None:
    """F1: it is closed after an answer that says so, never while a request may be on its way."""
    service = start(bundle=current, keep_alive_s=60).wait_ready()
    (old,) = service.worker_pids

    with service.connect() as client:
        assert client.request(QUERY).headers.get("connection") != "close"
        point(current, make("2"))
        service.process.send_signal(signal.SIGHUP)
        wait_until(lambda: service.records_of("retiring"))
        assert models(service) == {"tiny@2"}  # whoever comes now
        assert not client.has_news(1.0)
        assert is_alive(old)
        last = client.request(QUERY)
        assert (last.status, last.headers["connection"], last.json()["model"]) == (200, "close", "tiny@1")
        assert client.is_closed_by_server()
    wait_until(lambda: service.records_of("bundle swap"))
    assert not is_alive(old)


def test_a_folder_that_is_written_again_in_place_is_swapped_in(start: Start, make: Make) -> None:
    """And until then a worker that has to start anew serves what the others do."""
    bundle = make("1")
    service = start(bundle=bundle, keep_alive_s=1).wait_ready()
    shutil.rmtree(bundle)
    shutil.move(make("2"), bundle)

    os.kill(service.worker_pids[0], signal.SIGKILL)
    wait_until(lambda: len(service.worker_pids) == 2)
    service.wait_ready()
    assert models(service) == {"tiny@1"}
    assert swap(service)["result"] == "done"
    assert models(service) == {"tiny@2"}


def test_nothing_happens_when_the_bundle_is_the_same(start: Start, current: Path) -> None:
    service = start(bundle=current).wait_ready()

    record = swap(service)

    assert (record["result"], record["problem"]) == ("unchanged", "")
    assert len(service.worker_pids) == 1


def test_what_can_not_be_taken_is_refused_and_touches_no_worker(start: Start, current: Path, make: Make) -> None:
    service = start(bundle=current).wait_ready()
    damaged = make("2")
    (damaged / "tokenizer.json").write_text("{}")
    point(current, damaged)

    record = swap(service)

    assert (record["result"], record["level"]) == ("refused", "ERROR")
    assert record["problem"].startswith(f"bundle {current}: tokenizer.json has sha256 ")
    assert len(service.worker_pids) == 1
    assert models(service) == {"tiny@1"}


def test_what_a_worker_can_not_load_is_rolled_back_and_the_next_one_goes_in(
    start: Start, current: Path, make: Make
) -> None:
    service = start(bundle=current, workers=2, replicas=1, keep_alive_s=1).wait_ready()
    before = service.worker_pids
    broken = make("2")
    rewrite(broken, labels=[])
    point(current, broken)

    with Clients(service.traffic, 4) as clients:
        record = swap(service)
    assert (record["result"], record["to_digest"]) == ("rolled back", sha256(broken / MANIFEST))
    assert "worker 0 ended with exit code 78" in record["problem"]
    assert any(
        line.startswith(f"query-intent: worker 0: bundle {current}: bundle.json: ") for line in service.plain_lines
    )
    assert set(clients.statuses) == {200}
    assert clients.broken == 0
    assert all(map(is_alive, before))
    assert models(service) == {"tiny@1"}

    point(current, make("3"))
    assert swap(service)["result"] == "done"
    assert models(service) == {"tiny@3"}


@needs.OPENVINO
def test_golden_answers_that_are_not_given_keep_the_old_model(tmp_path: Path) -> None:
    """With the real engine, since the null target answers anything."""
    bundle = shutil.copytree(SHIPPED_BUNDLE, tmp_path / "bundle")
    golden = [query.model_dump() for query in Bundle(bundle).manifest.golden]
    with RunningService(tmp_path / "service", bundle=bundle, target="cpu", replicas=1, keep_alive_s=1) as service:
        service.wait_ready()
        golden[0]["probabilities"].reverse()
        rewrite(bundle, golden=golden)
        record = swap(service)
        assert record["result"] == "rolled back"
        (line,) = service.plain_lines
        assert f"golden query '{golden[0]['query']}' in bucket " in line
        assert service.classify("red shoes", timeout_ms=10_000).json()["source"] == "model"
        assert service.get("/v1/model").json()["digest"] == record["from_digest"]


def test_who_asks_during_a_swap_gets_another_one_after_it(start: Start, current: Path, make: Make) -> None:
    service = start(bundle=current, keep_alive_s=2).wait_ready()

    with service.connect() as idle:
        idle.request(QUERY)  # so that the first swap waits for the end of this connection
        point(current, make("2"))
        service.process.send_signal(signal.SIGHUP)
        wait_until(lambda: service.records_of("retiring"))
        point(current, make("3"))
        service.process.send_signal(signal.SIGHUP)
        wait_until(lambda: service.records_of("SIGHUP during a bundle swap: BUNDLE will be read again after it"))
        wait_until(lambda: len(service.records_of("bundle swap")) == 2)

    first, second = service.records_of("bundle swap")
    assert [first["result"], second["result"]] == ["done", "done"]
    assert first["to_digest"] == second["from_digest"]
    assert models(service) == {"tiny@3"}


def test_ten_swaps_leave_no_more_files_than_one(start: Start, make: Make, tmp_path: Path) -> None:
    """F23: nor does a scrape get slower."""
    link, bundles = tmp_path / "current", [make("1"), make("2")]
    link.symlink_to(bundles[0])
    service = start(bundle=link, keep_alive_s=1).wait_ready()
    copies = Path(os.environ.get("TMPDIR", "/tmp"))
    counts = []
    for number in range(1, 11):
        point(link, bundles[number % 2])
        assert swap(service)["result"] == "done"
        service.classify("red shoes", timeout_ms=10_000)
        files = [path for folder in service.files for path in folder.rglob("*")]
        releases = [path for kept in copies.glob(f"query-intent-{service.process.pid}-*") for path in kept.iterdir()]
        counts.append((len(files), len(releases)))

    assert len(set(counts[1:])) == 1
    assert counts[-1][1] == 1
    assert wait_until(lambda: service.total("requests_total", route="/v1/intent", status="200") == 10)


def test_a_service_can_be_stopped_during_a_swap(start: Start, current: Path, make: Make) -> None:
    service = start(bundle=current).wait_ready()
    copies = list(Path(os.environ.get("TMPDIR", "/tmp")).glob(f"query-intent-{service.process.pid}-*"))
    point(current, make("2"))
    service.process.send_signal(signal.SIGHUP)
    wait_until(lambda: len(service.worker_pids) == 2)
    with stopped(service.worker_pids[1]):
        service.process.terminate()
        wait_until(lambda: service.records_of("draining"))

    assert service.wait_exit() == 0
    assert service.records_of("bundle swap")[0]["problem"] == "the service is stopping"
    assert not any(map(is_alive, service.worker_pids))
    assert copies
    assert not any(copy.exists() for copy in copies)


def test_a_hang_up_before_the_service_is_ready_is_heard_when_it_is(start: Start, current: Path, make: Make) -> None:
    service = start(bundle=current, null_ms=200, keep_alive_s=1)
    wait_until(lambda: service.worker_pids)
    point(current, make("2"))
    service.process.send_signal(signal.SIGHUP)

    assert wait_until(lambda: service.records_of("bundle swap"))[0]["result"] == "done"
    told = [line["message"] for line in service.records if line["message"] in ("worker started", "ready")]
    assert told == ["worker started", "ready", "worker started"]


def test_a_model_from_s3_is_served_and_another_one_swapped_in(start: Start, s3: S3, make: Make, tmp_path: Path) -> None:
    """A file names it: so what is pinned can be changed while the service runs."""
    pointer = tmp_path / "pointer"
    addresses = [s3.upload(make(version), f"tiny/{version}") for version in ("1", "2")]
    pointer.write_text(addresses[0])
    service = start(bundle=pointer, keep_alive_s=1).wait_ready()
    assert models(service) == {"tiny@1"}
    assert service.records_of("starting")[0]["bundle"] == addresses[0]

    pointer.write_text(addresses[1])
    record = swap(service)

    assert (record["result"], record["from_bundle"], record["to_bundle"]) == ("done", *addresses)
    assert addresses[1].endswith(f"#sha256={record['to_digest']}")
    assert models(service) == {"tiny@2"}
