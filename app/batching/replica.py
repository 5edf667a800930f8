"""A replica: one loaded copy of the model, driven by one thread that pulls rows from the pool."""

from __future__ import annotations

import itertools
import logging
import statistics
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from app.backends.base import Backend, Model
from app.batching.entry import Entry, Row, State
from app.errors import BackendError, CoreFailed, InferenceFailed, Remedy
from app.packing import RowBuffers, SpreadBuffers

logger = logging.getLogger(__name__)

WARMUP_ROWS = 8  # per bucket; the first few pay for caches and lazy set-up
# Rows in a row of which not a single query succeeded, after which the copy of the model is not trusted any more.
FAILURES_BEFORE_RELOAD = 3
# What a replica leaves to the others before it takes its next row, when its core was only busy.
BUSY_PAUSE_S = 0.005
RELOAD_BACKOFF_S = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)

# Turns the logits [n, labels] of a row into one result a query: what they mean is the task's business, not the batch's.
Decode = Callable[[NDArray[np.float32]], Sequence[Any]]
Forward = Callable[[int, Sequence[NDArray[np.int64]]], NDArray[np.float32]]


class Canary(Protocol):
    """Raises ``BackendError`` unless ``forward`` gives the promised answers in this bucket."""

    def __call__(self, bucket: int, forward: Forward) -> None: ...


class FinishedRow(NamedTuple):
    """A row that ran: ``results[i]`` belongs to ``row.entries[i]`` and may be an exception. Times in seconds."""

    row: Row
    results: Sequence[Any]
    started_at: float
    finished_at: float
    replica: int
    retried: bool = False  # failed, and ran again query by query: its time says nothing about other rows


class Source(Protocol):
    """Where a replica gets its work and leaves it: the pool."""

    def take(self, replica: Replica) -> Row | None:
        """The next row; blocks until there is one. ``None`` when the service stops."""
        ...

    def finish(self, finished: FinishedRow) -> None: ...

    def give_back(self, entries: Sequence[Entry], replica: Replica, failure: CoreFailed) -> None:
        """The core failed; ``entries`` are those of the row that it didn't end, which somebody else has to run."""
        ...


class Replica(threading.Thread):
    """Loads the model, proves it on the canary in every bucket, then runs rows until the pool has no more.

    ``warm`` resolves to the seconds of each bucket, or to what kept the replica from loading.
    """

    def __init__(
        self,
        index: int,
        *,
        backend: Backend,
        rows: Mapping[int, RowBuffers | SpreadBuffers],
        decode: Decode,
        canary: Canary | None,
        source: Source,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        super().__init__(name=f"replica-{index}", daemon=True)
        self.index = index
        self.warm: Future[dict[int, float]] = Future()
        self.is_ready = False
        self.gate = threading.Lock()  # closed while this replica waits; the pool opens it when there is work
        self.gate.acquire()
        self._backend = backend
        self._rows = rows
        self._decode = decode
        self._canary = canary
        self._source = source
        self._clock = clock
        self._stop_requested = threading.Event()
        self._running_since: float | None = None
        self._model: Model | None = None

    def run(self) -> None:
        if not self.warm.set_running_or_notify_cancel():  # from here on nobody can cancel it under our hands
            return
        try:
            seconds = self._load()
        except CoreFailed as failure:
            self.warm.set_exception(BackendError(str(failure)))
            return
        except BaseException as error:
            self.warm.set_exception(error)
            return
        self.is_ready = True
        self.warm.set_result(seconds)
        try:
            self._serve()
        except Exception:
            logger.exception("replica %d ended. This is a bug.", self.index)
        finally:
            self.is_ready = False
            self._unload()

    def is_hanging(self, now: float, limit_s: float) -> bool:
        """Whether a row has been running for longer than ``limit_s``: nothing can end it but the process."""
        since = self._running_since
        return since is not None and now - since > limit_s

    def stop(self) -> None:
        """Cut a pending reload short; a replica that waits for work is ended by the pool."""
        self._stop_requested.set()

    def _serve(self) -> None:
        failures = 0
        while (row := self._source.take(self)) is not None:
            try:
                failures = 0 if self._run_row(row) else failures + 1
            except CoreFailed as failure:
                if not self._outlives(failure, row.entries):
                    return
                failures += 1
            if failures == FAILURES_BEFORE_RELOAD:
                if not (self._is_sound() or self._reload()):
                    return
                failures = 0

    def _outlives(self, failure: CoreFailed, entries: Sequence[Entry] = ()) -> bool:
        """Leave the ``entries`` to others; whether this replica may go on."""
        self._running_since = None
        is_over = failure.remedy is not Remedy.BACK_OFF
        extra = {"replica": self.index, "fault": failure.fault, "remedy": failure.remedy.value}
        logger.error("core failed: %s", failure, extra=extra)
        if is_over:
            self.is_ready = False  # before the row goes back, or it might be for this one again
        self._source.give_back(entries, self, failure)
        if not is_over:
            self._stop_requested.wait(BUSY_PAUSE_S)
        return not is_over

    def _is_sound(self) -> bool:
        """Whether the model still passes its canary: then the queries were to blame, and reloading would not help."""
        if self._canary is None:
            return False
        try:
            for bucket in self._rows:
                self._canary(bucket, self._forward)
        except Exception:
            return False
        return True

    def _load(self) -> dict[int, float]:
        self._model = self._backend.load(self.index)
        try:
            return {bucket: self._warm_up(bucket) for bucket in self._rows}
        except BaseException:
            self._unload()
            raise

    def _unload(self) -> None:
        if self._model is not None:
            model, self._model = self._model, None
            model.close()

    def _warm_up(self, bucket: int) -> float:
        """Median seconds of a full row of this bucket, after the canary has passed."""
        if self._canary is not None:
            try:
                self._canary(bucket, self._forward)
            except BackendError as error:
                raise BackendError(f"replica {self.index}: {error}") from error
        query = np.ones(self._rows[bucket].longest_query, np.int64)
        seconds = []
        for _ in range(WARMUP_ROWS):
            started = self._clock()
            self._forward(bucket, [query])
            seconds.append(self._clock() - started)
        return statistics.median(seconds[WARMUP_ROWS // 4 :])

    def _forward(self, bucket: int, queries: Sequence[NDArray[np.int64]]) -> NDArray[np.float32]:
        assert self._model is not None, "a replica without a model took a row. This is a bug."
        buffers = self._rows[bucket]
        buffers.fill(queries)
        logits = self._model.forward(buffers.hidden, buffers.mask, buffers.pool)
        if logits.shape[0] < len(queries) or not np.isfinite(logits[: len(queries)]).all():
            raise BackendError(
                f"the model gave logits of shape {logits.shape}, or not finite, for {len(queries)} queries"
            )
        return logits[: len(queries)]

    def _run_row(self, row: Row) -> bool:
        """Run a row and hand the results back; whether any query of it succeeded."""
        started_at = self._running_since = self._clock()
        retried = False
        try:
            results = self._decode(self._forward(row.bucket, [entry.token_ids for entry in row.entries]))
            if len(results) != len(row.entries):
                raise BackendError(f"{len(results)} results for {len(row.entries)} queries. This is a bug.")
        except CoreFailed:
            raise
        except Exception:
            logger.exception("a row of %d queries failed; retrying them one by one", len(row.entries))
            results, retried = [self._run_alone(entry) for entry in row.entries], True
        self._running_since = None
        succeeded = not all(isinstance(result, Exception) for result in results)
        self._source.finish(FinishedRow(row, results, started_at, self._clock(), self.index, retried))
        return succeeded

    def _run_alone(self, entry: Entry) -> Any:
        """A row fails as a whole; alone, only the query that is to blame does."""
        if entry.state is State.DONE:
            return InferenceFailed("nobody waits for this query any more")
        bucket = next(bucket for bucket in sorted(self._rows) if bucket >= entry.tokens)
        try:
            return self._decode(self._forward(bucket, [entry.token_ids]))[0]
        except CoreFailed:
            raise
        except Exception as error:
            failure = InferenceFailed("the model failed on this query")
            failure.__cause__ = error
            return failure

    def _reload(self) -> bool:
        """Load the model anew after it kept failing; false when the service stops first."""
        self.is_ready = False
        logger.error("replica %d failed %d rows in a row; loading it anew", self.index, FAILURES_BEFORE_RELOAD)
        self._unload()
        for backoff_s in itertools.chain(RELOAD_BACKOFF_S, itertools.repeat(RELOAD_BACKOFF_S[-1])):
            if self._stop_requested.wait(backoff_s):
                break
            try:
                self._load()
            except CoreFailed as failure:
                if not self._outlives(failure):
                    break
            except Exception:
                logger.exception("replica %d could not be loaded", self.index)
            else:
                self.is_ready = True
                logger.info("replica %d is back", self.index)
                return True
        return False
