"""``python -m app.healthcheck``: what a container runtime restarts the service by."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

from app import healthcheck
from app.settings import Settings
from tests.app.service.conftest import Start
from tests.app.service.running import Address, RunningService, wait_until


def check(address: Address) -> subprocess.CompletedProcess[str]:
    own = {"QUERY_INTENT_OPS_HOST": address[0], "QUERY_INTENT_OPS_PORT": str(address[1])}
    command = [sys.executable, "-m", "app.healthcheck"]
    return subprocess.run(command, env=os.environ | own, capture_output=True, text=True, timeout=60, check=False)


def test_a_service_that_answers_is_healthy_and_nothing_is_said(service: RunningService) -> None:
    done = check(service.operations)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_it_finds_a_service_that_listens_on_every_interface(start: Start) -> None:
    service = start(ops_host="0.0.0.0").wait_ready()
    assert service.operations[0] == "0.0.0.0"
    assert check(service.operations).returncode == 0


def test_a_service_that_drains_is_healthy_though_not_ready(start: Start) -> None:
    service = start(drain_delay_s=60).wait_ready()
    service.process.terminate()
    wait_until(lambda: service.ops_status("/readyz") == 503)
    assert check(service.operations).returncode == 0


def test_a_port_where_nobody_listens_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = free.getsockname()
    done = check(address)
    assert done.returncode == 1
    assert f"healthcheck: 127.0.0.1:{address[1]}: " in done.stderr
    assert "Traceback" not in done.stderr


def test_an_answer_other_than_200_is_unhealthy_and_shown() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        command = [sys.executable, "-m", "app.healthcheck"]
        own = {"QUERY_INTENT_OPS_HOST": "127.0.0.1", "QUERY_INTENT_OPS_PORT": str(listening.getsockname()[1])}
        with subprocess.Popen(command, env=os.environ | own, stderr=subprocess.PIPE, text=True) as process:
            connection, _ = listening.accept()
            connection.recv(4096)
            connection.sendall(b"HTTP/1.1 500 Internal Server Error\r\n\r\n")
            connection.close()
            _, said = process.communicate(timeout=60)
        assert process.returncode == 1
        assert "answered 'HTTP/1.1 500 Internal Server Error'" in said


def test_it_looks_where_the_service_listens_by_default() -> None:
    settings = Settings.read({})
    assert (settings.ops_host, settings.ops_port) == (healthcheck.DEFAULT_HOST, healthcheck.DEFAULT_PORT)
