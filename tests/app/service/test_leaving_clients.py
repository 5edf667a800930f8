"""Clients that close their socket while their answer is on its way, beside clients that stay."""

from __future__ import annotations

import random

from benchmarks.raw_http import post
from tests.app.service.conftest import Start
from tests.app.service.load import Clients
from tests.app.service.running import wait_until


def test_clients_that_leave_at_any_moment_cost_the_others_nothing(start: Start) -> None:
    """F12: no answer of a client that stays fails, nothing is logged, and nothing is left in the books."""
    service = start(null_ms=2, fallback="off").wait_ready()
    chance = random.Random(12)
    with Clients(service.traffic, 6) as stay:
        for number in range(400):
            with service.connect() as leaves:
                document = {"queries": [f"lamp {number}"] * 5} if number % 4 == 0 else {"query": f"lamp {number}"}
                leaves.send(post("/v1/intents" if number % 4 == 0 else "/v1/intent", document))
                leaves.has_news(chance.uniform(0, 0.005))
        answered = stay.statuses[200]
        wait_until(lambda: stay.statuses[200] >= answered + 100)

    assert set(stay.statuses) == {200}
    assert not stay.broken
    assert not stay.hung
    wait_until(lambda: service.total("inflight") + service.total("queue_items") + service.total("queue_tokens") == 0)
    assert service.total("cancelled_total") > 0
    assert [record for record in service.records if record["level"] not in ("INFO", "DEBUG")] == []
    assert service.plain_lines == []
