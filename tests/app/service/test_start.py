"""Starts that can't be: one line that says why, an exit code, no traceback, and nothing left behind."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from app.bundle import EMBEDDINGS, MANIFEST, TOKENIZER
from app.settings import SHIPPED_BUNDLE
from tests import needs
from tests.app.service.conftest import Start
from tests.app.service.running import RunningService, is_alive, wait_until
from tests.tiny_bundle import rewrite

Damage = Callable[[Path], None]


def a_label_too_few(bundle: Path) -> None:
    manifest = json.loads((bundle / MANIFEST).read_text())
    rewrite(bundle, labels=manifest["labels"][:-1])


def swap_a_byte(bundle: Path) -> None:
    path = bundle / EMBEDDINGS
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def remove(name: str) -> Damage:
    return lambda bundle: (bundle / name).unlink()


# name -> (what is done to the bundle, settings, what the line says)
FAILURES: dict[str, tuple[Damage | None, dict[str, Any], str]] = {
    "a bundle that is not there": (None, {"bundle": "/nowhere/bundle"}, r"bundle /nowhere/bundle: .*No such file"),
    "a missing file": (remove(TOKENIZER), {}, rf"bundle \S+: {TOKENIZER} is missing"),
    "a wrong checksum": (swap_a_byte, {}, rf"bundle \S+: {EMBEDDINGS} has sha256 \w+…, not \w+… as released"),
    "a label too few": (a_label_too_few, {}, r"bundle \S+: bundle.json: .*label_priors"),
    "an unknown target of a bundle": (None, {"target": "torch"}, r"has no target 'torch', only fake; make it with: "),
    "an unknown setting": (None, {"slow_ms": 5}, r"QUERY_INTENT_SLOW_MS: no such setting"),
    "a bad value": (None, {"slo_ms": 0}, r"QUERY_INTENT_SLO_MS=0: .*greater than 0"),
}


@pytest.fixture(scope="module")
def failures(tmp_path_factory: pytest.TempPathFactory, null_bundle: Path) -> Iterator[dict[str, RunningService]]:
    """All of them at once: each is a process that ends by itself."""
    folder = tmp_path_factory.mktemp("failures")
    services = {}
    for number, (name, (damage, settings, _)) in enumerate(FAILURES.items()):
        bundle = null_bundle
        if damage is not None:
            bundle = shutil.copytree(null_bundle, folder / f"bundle-{number}")
            damage(bundle)
        services[name] = RunningService(folder / f"service-{number}", **({"bundle": bundle} | settings))
    yield services
    for service in services.values():
        service.kill()


@pytest.mark.parametrize("name", FAILURES)
def test_a_start_that_can_not_be_says_why_in_one_line(failures: dict[str, RunningService], name: str) -> None:
    service = failures[name]

    assert service.wait_exit() == 1
    (line,) = service.plain_lines
    assert line.startswith("query-intent: ")
    assert re.search(FAILURES[name][2], line)


@needs.OPENVINO
def test_golden_answers_that_the_model_does_not_give_stop_the_start(tmp_path: Path) -> None:
    """The shipped bundle with one golden answer turned round: the engine is real, so is the refusal."""
    bundle = shutil.copytree(SHIPPED_BUNDLE, tmp_path / "bundle")
    golden = json.loads((bundle / MANIFEST).read_text())["golden"]
    golden[0]["probabilities"].reverse()
    rewrite(bundle, golden=golden)
    service = RunningService(tmp_path / "service", bundle=bundle, target="cpu")
    try:
        assert service.wait_exit() == 1
        (line,) = service.plain_lines
        assert re.search(
            rf"query-intent: replica \d+: golden query '{golden[0]['query']}' in bucket \d+: \w+ \(.*\) instead of ",
            line,
        )
    finally:
        service.kill()


@pytest.mark.parametrize("taken_port", ["port", "ops_port"])
def test_a_port_in_use_is_named_and_nothing_is_left_behind(start: Start, taken_port: str) -> None:
    """F17: two services for one place."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        service = start(**{taken_port: port})
        assert service.wait_exit() == 1

    assert not service.files
    (line,) = service.plain_lines
    name = f"QUERY_INTENT_{taken_port.upper()}"
    assert line == f"query-intent: {name}={port}: can't listen on 127.0.0.1: Address already in use"


def test_a_worker_that_dies_before_it_is_ready_ends_the_service(start: Start, one_bucket_bundle: Path) -> None:
    service = start(bundle=one_bucket_bundle, null_ms=400)
    (pid,) = wait_until(lambda: service.worker_pids)
    os.kill(pid, signal.SIGKILL)

    assert service.wait_exit() == 1
    assert service.records_of("worker ended before it was ready")
    assert "Traceback" not in service.text


def test_until_it_is_ready_a_service_is_alive_and_says_what_it_waits_for(start: Start, one_bucket_bundle: Path) -> None:
    """F4: live is not ready."""
    service = start(bundle=one_bucket_bundle, null_ms=150)

    assert service.ops("/healthz").status == 200
    reply = service.ops("/readyz")
    assert (reply.status, reply.json()["ready"], reply.json()["replicas"]) == (503, False, 2)
    assert reply.json()["reason"].startswith("loading: ")
    refused = service.classify("red shoes")
    assert (refused.status, refused.json()["type"]) == (503, "urn:query-intent:problem:not-ready")
    assert int(refused.headers["retry-after"]) >= 1
    assert service.wait_ready().classify("red shoes", timeout_ms=10_000).status == 200


def test_a_service_can_be_stopped_while_it_starts(start: Start) -> None:
    """Also while the worker imports, when Ctrl-C would still be a KeyboardInterrupt anywhere."""
    service = start(drain_delay_s=30)
    pids = wait_until(lambda: service.worker_pids)
    wait_until(lambda: "numpy" in Path(f"/proc/{pids[0]}/maps").read_text())
    service.process.send_signal(signal.SIGINT)

    assert service.wait_exit() == 0
    assert service.plain_lines == []
    assert not any(map(is_alive, pids))
