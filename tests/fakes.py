"""Stand-ins that tests use in place of an engine and of time: real enough to run the whole path on."""

from __future__ import annotations

import asyncio
import selectors
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.batching.queue import Entry, State
from app.batching.request import Outcome
from app.packing import Embeddings, RowBuffers

VOCABULARY = 1000
WARMUP = 1  # the only token of the rows that a replica measures itself with
# A query that holds one of these makes the model…
POISON = 901  # raise
NOT_A_NUMBER = 902  # answer NaN
TOO_FEW = 903  # answer for no query at all

PATIENCE_S = 20.0  # only ever waited out by a test that fails


class VirtualClock:
    """Time that passes when the test says so."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop whose time jumps to the next timer as soon as there is nothing else to do."""

    def __init__(self) -> None:
        self.now = 0.0
        super().__init__(_JumpingSelector(self))

    def time(self) -> float:
        return self.now


class _JumpingSelector(selectors.DefaultSelector):
    def __init__(self, loop: VirtualTimeLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout:
            self._loop.now += timeout
        return super().select(timeout and 0)


class ManualPool:
    """Lets queries in and computes none: the test says what becomes of each, and when."""

    def __init__(self) -> None:
        self.admitted: list[Entry] = []
        self.abandoned: list[Entry] = []
        self.cancelled: list[State] = []
        self.refusal: Exception | None = None

    def admit(self, entries: Sequence[Entry]) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.admitted += entries

    def extend(self, entry: Entry, deadline: float) -> bool:
        entry.deadline = max(entry.deadline, deadline)
        return entry.state is not State.DONE

    def abandon(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            entry.state = State.DONE
            self.abandoned.append(entry)

    def count_cancelled(self, entries: Iterable[Entry]) -> None:
        self.cancelled += [entry.state for entry in entries]

    def settle(self, entry: Entry, result: Any, *, queue_s: float = 0.0, inference_s: float = 0.0) -> None:
        assert entry.state is not State.DONE
        entry.state = State.DONE
        entry.owner.settle(entry.index, Outcome(result, queue_s, inference_s))


def query(*token_ids: int) -> NDArray[np.int64]:
    return np.array(token_ids, np.int64)


def answer_of(token_ids: Sequence[int] | NDArray[np.int64]) -> int:
    """What ``FakeModel`` answers to a query: a hash of its tokens and their order, exact in float32."""
    return sum((place + 1) * int(token) for place, token in enumerate(token_ids)) % (1 << 20)


def decode(logits: NDArray[np.float32]) -> list[int]:
    return [int(answer) for answer in logits[:, 0]]


def readable_rows(*buckets: int) -> dict[int, RowBuffers]:
    """Row buffers whose first hidden column holds the token ids, so that ``FakeModel`` can read the queries."""
    word = np.zeros((VOCABULARY, 2), np.float32)
    word[:, 0] = np.arange(VOCABULARY)
    embeddings = Embeddings(word, np.zeros((max(buckets), 2), np.float32))
    return {bucket: RowBuffers(bucket, embeddings, pooling="mean") for bucket in buckets}


class FakeModel:
    """Answers each query with ``answer_of`` its tokens, read back from the row."""

    def __init__(self, backend: FakeBackend, core: int) -> None:
        self.core = core
        self.is_closed = False
        self._backend = backend

    def forward(
        self, hidden: NDArray[np.float32], mask: NDArray[np.float32], pool: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        assert not self.is_closed, "a closed model was run"
        ids = hidden[0, :, 0].astype(int)
        queries = [tuple(ids[weights > 0].tolist()) for weights in pool if weights.any()]
        tokens = {token for query in queries for token in query}
        if tokens == {WARMUP}:
            return np.zeros((len(pool), 1), np.float32)
        self._backend.rows.append(queries)
        self._backend.started.release()
        self._backend.wait_for_permission(tokens)
        if POISON in tokens:
            raise RuntimeError("poisoned")
        if TOO_FEW in tokens:
            return np.zeros((0, 1), np.float32)
        logits = np.zeros((len(pool), 1), np.float32)
        for segment, tokens_of_query in enumerate(queries):
            logits[segment] = np.nan if NOT_A_NUMBER in tokens_of_query else answer_of(tokens_of_query)
        return logits

    def close(self) -> None:
        assert not self.is_closed, "a model was closed twice"
        self.is_closed = True


class FakeBackend:
    """Loads ``FakeModel``; the test looks at ``models`` and ``rows``, and decides when rows and loads may go on.

    ``failures`` are raised by the next loads, one each; ``None`` among them lets one succeed.
    """

    def __init__(self, *failures: Exception | None) -> None:
        self.models: list[FakeModel] = []
        self.rows: list[list[tuple[int, ...]]] = []  # the queries of each row that ran, warm-up left out
        self.started = threading.Semaphore(0)  # released as each of those rows begins
        self.load_started = threading.Semaphore(0)
        self.may_load = threading.Event()
        self.may_load.set()
        self._failures = list(failures)
        self._is_held: Callable[[set[int]], bool] = lambda _tokens: False
        self._permits = threading.Semaphore(0)

    @property
    def queries(self) -> list[tuple[int, ...]]:
        """Every query that ran, in order, as often as it ran."""
        return [each for row in self.rows for each in row]

    def load(self, core: int) -> FakeModel:
        self.load_started.release()
        assert self.may_load.wait(PATIENCE_S), "the test never let the model load"
        if self._failures and (failure := self._failures.pop(0)) is not None:
            raise failure
        self.models.append(FakeModel(self, core))
        return self.models[-1]

    def hold(self, token: int | None = None) -> None:
        """From now on every row, or every row with this token, waits in the middle of the model for a ``release``."""
        self._is_held = lambda tokens: token is None or token in tokens

    def release(self, rows: int = 1) -> None:
        self._permits.release(rows)

    def let_go(self) -> None:
        """End of ``hold``: rows run through, those that wait too."""
        self._is_held: Callable[[set[int]], bool] = lambda _tokens: False
        self._permits.release(1000)

    def wait_until_running(self, rows: int = 1) -> None:
        """Blocks until ``rows`` more rows have begun."""
        for _ in range(rows):
            assert self.started.acquire(timeout=PATIENCE_S), "no row began"

    def wait_for_permission(self, tokens: set[int]) -> None:
        if self._is_held(tokens):
            assert self._permits.acquire(timeout=PATIENCE_S), "the test never released the row"


class Reply(NamedTuple):
    """A reply as its bytes say it."""

    status: int
    headers: dict[str, str]
    body: bytes


class FakeConnection:
    """A connection to nobody: keeps what is written to it until the transport closes."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.transport = _FakeTransport()
        self.tasks: set[asyncio.Task[None]] = set()
        self.responses = 0

    @property
    def written(self) -> bytes:
        return self.transport.written

    @property
    def reply(self) -> Reply:
        head, _, body = self.written.partition(b"\r\n\r\n")
        status, *lines = head.decode("ascii").split("\r\n")
        return Reply(int(status.split()[1]), dict(line.split(": ", 1) for line in lines), body)

    def default_headers(self) -> bytes:
        return b"date: today\r\n"

    def on_response_complete(self) -> None:
        self.responses += 1


class _FakeTransport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self._is_closing = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def close(self) -> None:
        self._is_closing = True

    def is_closing(self) -> bool:
        return self._is_closing
