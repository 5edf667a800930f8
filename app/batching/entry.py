"""A query on its way through the queue, and the row that it goes into."""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class State(Enum):
    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"  # answered, failed, expired or abandoned: whatever still arrives for it is dropped


class Entry:
    """One query on its way through the queue: ``token_ids`` [tokens] int64, times in seconds of the caller's clock.

    ``owner`` is the caller's own reference to who waits for it and ``index`` its place there; the queue reads neither.
    """

    __slots__ = ("deadline", "enqueued_at", "index", "is_bulk", "owner", "state", "token_ids", "tokens", "was_returned")

    def __init__(
        self,
        token_ids: NDArray[np.int64],
        *,
        enqueued_at: float,
        deadline: float,
        is_bulk: bool = False,
        owner: Any = None,
        index: int = 0,
    ) -> None:
        self.token_ids = token_ids
        self.tokens = len(token_ids)
        self.enqueued_at = enqueued_at
        self.deadline = deadline
        self.is_bulk = is_bulk  # of a list: single queries go ahead of it
        self.owner = owner
        self.index = index
        self.state = State.WAITING
        self.was_returned = False  # by a core that failed under it: the next one that does is its last

    def __repr__(self) -> str:
        return f"<Entry {self.tokens} tokens, {self.state.value}{', bulk' if self.is_bulk else ''}>"


class Dispatch(Enum):
    """Why a row left with what it holds, and not with more."""

    IDLE = "idle"  # nothing more waited, and a replica was idle
    SHARE = "share"  # the rest is for the replicas that idle, too
    OBJECTIVE = "objective"  # a longer row would be too late for the oldest query's objective
    DEADLINE = "deadline"  # or for its deadline
    FULL = "full"  # nothing more fits


class Row(NamedTuple):
    """The entries that go into one pass, and the bucket (row length in tokens) that covers them."""

    bucket: int
    entries: list[Entry]
    dispatch: Dispatch = Dispatch.IDLE


class Decision(NamedTuple):
    """What to do now: run ``row`` if there is one, tell the ``expired`` that their time is up."""

    row: Row | None
    expired: list[Entry]
