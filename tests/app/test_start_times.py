"""How long a start took, and on a new machine since its boot."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from app.ecs_task import METADATA_URI
from app.start_times import NEW_MACHINE_S, PLACED_S, StartTimes, seconds_since_boot

NOWHERE = {METADATA_URI: "http://127.0.0.1:1/v4/id"}


def samples(times: StartTimes) -> dict[str, float]:
    return {
        each.name.removeprefix("query_intent_"): each.value for family in times.collect() for each in family.samples
    }


def test_before_it_is_ready_there_is_nothing_to_tell() -> None:
    assert samples(StartTimes(since_boot=lambda: 100.0, environ={})) == {}


def test_on_a_new_machine_the_boot_counts() -> None:
    times = StartTimes(since_boot=lambda: 190.0, environ={})
    times.note_ready(4.5)
    assert samples(times) == {"start_to_ready_seconds": 4.5, "boot_to_ready_seconds": 190.0}


@pytest.mark.parametrize("boot_s", [NEW_MACHINE_S, 8e6, None])
def test_one_that_was_up_before_says_nothing_of_its_boot(boot_s: float | None) -> None:
    """A deploy to it, or a system that does not say."""
    times = StartTimes(since_boot=lambda: boot_s, environ={})
    times.note_ready(4.5)
    assert samples(times) == {"start_to_ready_seconds": 4.5}


Ecs = Callable[[Any], dict[str, str]]


@pytest.fixture
def ecs() -> Iterator[Ecs]:
    """A task's environment, and the metadata endpoint in it, which answers with what it is given."""
    told = b""

    class Endpoint(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            assert self.path == "/v4/id/task"
            self.send_response(200)
            self.end_headers()
            self.wfile.write(told)

        def log_message(self, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Endpoint) as server:

        def tell(task: Any) -> dict[str, str]:
            nonlocal told
            told = json.dumps(task).encode()
            return {METADATA_URI: f"http://127.0.0.1:{server.server_port}/v4/id"}

        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield tell
        server.shutdown()
        thread.join()


def seconds_ago(seconds: float) -> str:
    """As the endpoint writes it."""
    return f"{datetime.now(timezone.utc) - timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%S}.202617438Z"


@pytest.mark.parametrize(("after_boot_s", "is_told"), [(60, True), (PLACED_S - 5, True), (PLACED_S + 5, False)])
def test_in_ecs_a_machine_is_new_to_a_task_that_came_right_after_its_boot(
    ecs: Ecs, after_boot_s: float, is_told: bool
) -> None:
    """Not to the next one, of a deploy or a rollback within the hour. A pull may take as long as it likes."""
    environ = ecs({"PullStartedAt": seconds_ago(1900 - after_boot_s)})
    times = StartTimes(since_boot=lambda: 1900.0, environ=environ)
    times.note_ready(4.5)
    assert ("boot_to_ready_seconds" in samples(times)) is is_told


@pytest.mark.parametrize("task", [{}, {"PullStartedAt": None}, {"PullStartedAt": "soon"}, []])
def test_in_ecs_a_machine_that_had_the_image_is_not_new(ecs: Ecs, task: Any) -> None:
    times = StartTimes(since_boot=lambda: 190.0, environ=ecs(task))
    times.note_ready(4.5)
    assert samples(times) == {"start_to_ready_seconds": 4.5}


def test_an_endpoint_that_is_not_there_keeps_nothing_from_starting() -> None:
    times = StartTimes(since_boot=lambda: 190.0, environ=NOWHERE)
    times.note_ready(4.5)
    assert samples(times) == {"start_to_ready_seconds": 4.5}


def test_the_kernel_knows_when_it_was_booted() -> None:
    first, second = seconds_since_boot(), seconds_since_boot()
    assert first is not None
    assert second is not None
    assert 0 < first <= second
