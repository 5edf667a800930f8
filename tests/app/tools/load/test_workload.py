"""From options to what goes over the wire."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from app.tools.load.workload import Asked, Workload

NOTHING = {
    "url": "http://127.0.0.1:8080/v1/intent",
    "body": '{"query": "{query}"}',
    "warmup": 0.0,
    "seed": 0,
    "connections": 64,
    "timeout_ms": 1000,
    "find_rate": False,
}


def workload(**given: Any) -> Workload:
    fields = dict.fromkeys(Asked.__dataclass_fields__) | NOTHING | given
    return Workload(Asked(**fields))


def sent(found: Workload, rate: float | None = None, *, seed: int = 0) -> list[str]:
    """The queries in the order in which they leave."""
    requests = found.requests(found.plan(rate, seed=seed), seed=seed)
    return [json.loads(request.partition(b"\r\n\r\n")[2])["query"] for request in requests]


def test_a_seed_names_one_workload() -> None:
    found = workload(rate=100, duration=1, zipf_s=1.0, distinct=50)
    assert sent(found, 100, seed=1) == sent(found, 100, seed=1) != sent(found, 100, seed=2)


def test_steps_share_the_duration() -> None:
    plan = workload(steps=(100.0, 300.0), duration=3.0).plan(None, seed=0)
    assert [(step.seconds, step.rate) for step in plan.steps] == [(1.5, 100), (1.5, 300)]


def test_the_recorded_part_of_a_replay_starts_with_the_traces_first_query(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("time,query\n" + "".join(f"{n / 10},query {n}\n" for n in range(50)))
    found = workload(replay=tmp_path / "log.csv", warmup=1.0)
    plan = found.plan(None, seed=0)
    assert plan.first_recorded > 0
    assert sent(found)[plan.first_recorded :] == [f"query {n}" for n in range(50)]


def test_a_trace_without_queries_is_sent_with_those_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("1\n2\n3\n4\n")
    (tmp_path / "queries.txt").write_text("lamp\ndesk\n")
    found = workload(replay=tmp_path / "log.txt", queries=tmp_path / "queries.txt")
    assert Counter(sent(found)) == {"lamp": 2, "desk": 2}


def test_other_queries_than_the_traces_own_can_be_asked_for(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("time,query\n1,lamp\n2,lamp\n")
    (tmp_path / "queries.txt").write_text("desk\n")
    assert sent(workload(replay=tmp_path / "log.csv", queries=tmp_path / "queries.txt")) == ["desk", "desk"]
    assert "lamp" not in sent(workload(replay=tmp_path / "log.csv", distinct=10))


def test_a_result_says_how_it_came_about(tmp_path: Path) -> None:
    (tmp_path / "queries.txt").write_text("desk\n")
    asked = workload(rate=5.0, queries=tmp_path / "queries.txt", zipf_s=1.0).asked
    assert asked.recorded == {
        **{name: NOTHING[name] for name in ("url", "body", "seed", "connections", "timeout_ms")},
        "rate": 5.0,
        "zipf_s": 1.0,
        "queries": str(tmp_path / "queries.txt"),
        "arrivals": "poisson",
        "warmup_s": 0.0,
    }
