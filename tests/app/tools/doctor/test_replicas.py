"""Replicas on every core: judged on numbers, and probed for real on the tiny bundle."""

from __future__ import annotations

import os
from pathlib import Path

from app.tools.doctor.check import Verdict
from app.tools.doctor.replicas import Probed, canary, latency, probe, tokens_per_second
from tests.tiny_bundle import BUCKETS

NAMES = ["core 0", "core 1", "core 2"]


def probed(*rows: dict[int, float]) -> Probed:
    return Probed({f"core {core}": each for core, each in enumerate(rows)}, {}, {})


class TestCanary:
    def test_all_well(self) -> None:
        assert canary(probed({8: 1.0}, {8: 1.0}, {8: 1.0}), NAMES).verdict is Verdict.OK

    def test_a_core_that_fails_is_named_with_its_reason_and_those_after_it_that_nobody_tried(self) -> None:
        found = canary(Probed({"core 0": {8: 1.0}}, {"core 1": "wrong answer"}, {}), NAMES)
        assert found.is_failed
        assert found.detail.splitlines() == [
            "1 of 3 replicas give the golden answers",
            "core 1: wrong answer",
            "not tried: core 2",
        ]

    def test_where_none_came_up_the_engines_last_words_are_quoted(self) -> None:
        found = canary(Probed({}, {"core 0": "it ended"}, {}, "no device"), NAMES)
        assert "no device" in found.detail


class TestLatency:
    def test_the_table_has_a_line_a_core_and_a_column_a_bucket(self) -> None:
        found = latency(probed({8: 1.0, 16: 2.0}, {8: 1.1, 16: 2.25}), 10)
        assert found.verdict is Verdict.OK
        assert found.detail.splitlines()[1:] == [
            "tokens        8       16",
            "core 0     1.00     2.00",
            "core 1     1.10     2.25",
        ]
        assert found.data["rows_ms"]["core 1"] == {8: 1.1, 16: 2.25}

    def test_a_core_that_is_slower_than_the_others_is_worth_a_look(self) -> None:
        found = latency(probed({8: 1.0, 16: 2.0}, {8: 1.0, 16: 2.0}, {8: 2.0, 16: 4.0}), 10)
        assert found.verdict is Verdict.WARNING
        assert found.detail.startswith("core 2 over")

    def test_a_lone_query_must_fit_the_objective_on_the_slowest_core(self) -> None:
        rows = probed({8: 9.0}, {8: 10.0})
        assert latency(rows, 10).verdict is Verdict.OK
        assert latency(rows, 9.9).is_failed

    def test_what_the_cores_could_compute_is_their_best_rows_together(self) -> None:
        assert tokens_per_second(probed({8: 1.0, 16: 4.0}, {8: 2.0, 16: 2.0})) == 8_000 + 8_000


class TestProbe:
    def test_every_replica_of_a_bundle_is_timed_in_every_bucket(self, tiny_bundle: Path) -> None:
        found = probe(tiny_bundle, "null", NAMES, os.environ)
        assert not found.errors
        assert list(found.rows_ms) == NAMES
        assert all(list(rows) == BUCKETS for rows in found.rows_ms.values())

    def test_a_process_that_ends_says_its_last_words(self, tmp_path: Path) -> None:
        found = probe(tmp_path, "null", NAMES, os.environ)
        assert list(found.errors) == ["core 0"]
        assert "exit code 1" in found.errors["core 0"]
        assert "bundle.json" in found.words

    def test_one_that_takes_for_ever_is_ended(self, tiny_bundle: Path) -> None:
        found = probe(tiny_bundle, "null", NAMES, os.environ, timeout_s=0.0)
        assert found.errors == {"core 0": "not ready after 0 s"}
