"""A replica: loads its copy of the model, proves it, measures it, and runs the rows it is given."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from app.batching.queue import Entry, Row
from app.batching.replica import FAILURES_BEFORE_RELOAD, WARMUP_ROWS, Canary, Decode, FinishedRow, Forward, Replica
from app.errors import BackendError, InferenceFailed
from tests.fakes import (
    NOT_A_NUMBER,
    PATIENCE_S,
    POISON,
    FakeBackend,
    FakeModel,
    VirtualClock,
    answer_of,
    decode,
    query,
    readable_rows,
)


class Script:
    """A source that hands out the rows of the test, then says that the service stops."""

    def __init__(self, *rows: Row) -> None:
        self.finished: list[FinishedRow] = []
        self._rows = list(rows)

    def take(self, replica: Replica) -> Row | None:
        assert replica.is_ready
        return self._rows.pop(0) if self._rows else None

    def finish(self, finished: FinishedRow) -> None:
        self.finished.append(finished)


def row_of(*queries: NDArray[np.int64], bucket: int = 16) -> Row:
    return Row(bucket, [Entry(ids, enqueued_at=0.0, deadline=1.0) for ids in queries])


def play(
    source: Any,
    backend: Any = None,
    *,
    canary: Canary | None = None,
    decode: Decode = decode,
    clock: VirtualClock | None = None,
) -> Replica:
    """Run a replica to its end."""
    replica = Replica(
        3,
        backend=backend or FakeBackend(),
        rows=readable_rows(8, 16),
        decode=decode,
        canary=canary,
        source=source,
        clock=clock or VirtualClock(),
    )
    replica.start()
    replica.join(PATIENCE_S)
    assert not replica.is_alive()
    return replica


class TestLoading:
    def test_each_bucket_is_measured_with_full_rows_and_their_median_taken_once_caches_are_warm(self) -> None:
        clock = VirtualClock()
        lengths: list[int] = []
        milliseconds = [5000, 5000, 6, 1, 5, 2, 4, 3]  # the cold ones would move the median to 4.5
        assert len(milliseconds) == WARMUP_ROWS

        class ColdAtFirst(FakeModel):
            def forward(self, hidden: Any, mask: Any, pool: Any) -> Any:
                clock.advance(milliseconds[len(lengths) % WARMUP_ROWS] / 1e3)
                lengths.append(int((hidden[0, :, 0] != 0).sum()))
                return super().forward(hidden, mask, pool)

        class Backend(FakeBackend):
            def load(self, core: int) -> FakeModel:
                return ColdAtFirst(self, core)

        replica = play(Script(), Backend(), clock=clock)
        assert replica.warm.result() == {8: pytest.approx(0.0035), 16: pytest.approx(0.0035)}
        assert lengths == [8] * WARMUP_ROWS + [16] * WARMUP_ROWS

    def test_it_loads_on_its_own_core_and_its_thread_is_named_after_it(self) -> None:
        backend = FakeBackend()
        replica = play(Script(), backend)
        assert [model.core for model in backend.models] == [3]
        assert replica.name == "replica-3"

    def test_the_canary_sees_every_bucket_and_real_answers(self) -> None:
        seen: list[tuple[int, list[int], str]] = []

        def canary(bucket: int, forward: Forward) -> None:
            answers = decode(forward(bucket, [query(5, 6), query(7)]))
            seen.append((bucket, answers, threading.current_thread().name))

        play(Script(), canary=canary)
        assert seen == [(bucket, [answer_of((5, 6)), answer_of([7])], "replica-3") for bucket in (8, 16)]

    def test_one_that_fails_its_canary_never_takes_a_row_and_gives_its_core_back(self) -> None:
        def canary(bucket: int, _forward: Forward) -> None:
            if bucket == 16:
                raise BackendError("golden query 'usb c cable' in bucket 16: media instead of product_search")

        backend, source = FakeBackend(), Script(row_of(query(5)))
        replica = play(source, backend, canary=canary)
        with pytest.raises(BackendError, match="usb c cable"):
            replica.warm.result()
        assert not replica.is_ready
        assert source.finished == []
        assert backend.models[0].is_closed

    @pytest.mark.parametrize("logits", [np.full((5, 1), np.nan), np.full((5, 1), np.inf), np.zeros((0, 1))])
    def test_a_model_that_answers_nonsense_while_it_warms_up_is_not_taken(self, logits: NDArray[np.float32]) -> None:
        class Nonsense(FakeModel):
            def forward(self, hidden: Any, mask: Any, pool: Any) -> Any:
                return logits

        class Backend(FakeBackend):
            def load(self, core: int) -> FakeModel:
                return Nonsense(self, core)

        with pytest.raises(
            BackendError, match=r"the model gave logits of shape \(\d, 1\), or not finite, for 1 queries"
        ):
            play(Script(), Backend()).warm.result()


class TestRows:
    def test_results_come_back_in_the_order_of_the_entries(self) -> None:
        clock = VirtualClock(100.0)
        row = row_of(query(5, 6), query(7), query(8, 9, 10))
        source = Script(row)
        play(source, clock=clock)
        assert source.finished == [FinishedRow(row, [answer_of(e.token_ids) for e in row.entries], 100.0, 100.0, 3)]

    def test_a_row_of_each_bucket_runs_in_its_own_buffers(self) -> None:
        source = Script(row_of(query(5), bucket=8), row_of(query(6), bucket=16), row_of(query(7), bucket=8))
        play(source)
        assert [finished.results for finished in source.finished] == [[answer_of([token])] for token in (5, 6, 7)]

    def test_when_the_service_stops_it_gives_its_core_back(self) -> None:
        backend = FakeBackend()
        replica = play(Script(row_of(query(5))), backend)
        assert not replica.is_ready
        assert backend.models[0].is_closed

    @pytest.mark.parametrize("culprit", [POISON, NOT_A_NUMBER])
    def test_a_failed_row_is_tried_again_once_query_by_query(self, culprit: int) -> None:
        backend, source = FakeBackend(), Script(row_of(query(5), query(culprit), query(6)))
        play(source, backend)
        (finished,) = source.finished
        assert finished.results[0] == answer_of([5])
        assert isinstance(finished.results[1], InferenceFailed)
        assert finished.results[1].__cause__ is not None
        assert finished.results[2] == answer_of([6])
        assert backend.rows == [[(5,), (culprit,), (6,)], [(5,)], [(culprit,)], [(6,)]]

    def test_queries_that_fail_row_after_row_cost_no_reload_while_the_canary_still_passes(self) -> None:
        backend = FakeBackend()
        poison = [row_of(query(POISON)) for _ in range(2 * FAILURES_BEFORE_RELOAD)]
        source = Script(*poison, row_of(query(5)))
        play(source, backend, canary=lambda bucket, forward: decode(forward(bucket, [query(6)])) and None)
        assert len(backend.models) == 1
        assert source.finished[-1].results == [answer_of([5])]

    def test_what_is_logged_of_a_failed_row_names_no_query(self, caplog: pytest.LogCaptureFixture) -> None:
        play(Script(row_of(query(POISON), query(6))))
        assert [record.getMessage() for record in caplog.records] == [
            "a row of 2 queries failed; retrying them one by one"
        ]

    def test_fewer_results_than_queries_are_never_handed_out_in_the_wrong_place(self) -> None:
        def forgetful(logits: NDArray[np.float32]) -> Sequence[int]:
            return decode(logits)[-1:]

        source = Script(row_of(query(5), query(6)))
        play(source, decode=forgetful)
        assert source.finished[0].results == [answer_of([5]), answer_of([6])]

    def test_a_source_that_fails_ends_the_replica_and_readiness_says_so(self, caplog: pytest.LogCaptureFixture) -> None:
        class Broken(Script):
            def take(self, replica: Replica) -> Row | None:
                raise RuntimeError("no row for you")

        backend = FakeBackend()
        replica = play(Broken(), backend)
        assert not replica.is_ready
        assert backend.models[0].is_closed
        assert "replica 3 ended. This is a bug." in caplog.text

    def test_one_whose_opening_was_given_up_before_it_began_loads_nothing(self) -> None:
        backend = FakeBackend()
        replica = Replica(0, backend=backend, rows={}, decode=decode, canary=None, source=Script())
        replica.warm.cancel()
        replica.run()
        assert backend.models == []
        assert not replica.is_ready
