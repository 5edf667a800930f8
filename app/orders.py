"""What the supervisor tells a worker: JSON in the worker's only argument."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel

from app.settings import Settings

# A worker exits with this when it can't start as asked, so that starting it again is pointless (sysexits' EX_CONFIG).
EXIT_START_FAILED = 78
# And with this when so many of its replicas are gone or stuck that a new process is needed (EX_SOFTWARE).
EXIT_REPLICAS_LOST = 70


class Orders(BaseModel):
    """``index`` is the worker's fixed place among ``workers``, ``slot`` its line of ``board`` and its files in
    ``metrics``; the two file descriptors are inherited. ``bundle`` is a copy of what is at ``address``.

    A replica spans ``span`` cores. The start fails unless ``least`` replicas come up: all at first, later the quorum.
    ``load_first``: others serve meanwhile, so that this one should not take connections before it can answer.
    """

    settings: Settings
    bundle: Path
    address: str
    index: int
    slot: int
    workers: int
    replicas: int
    span: int = 1
    least: int | None = None
    socket_fd: int
    lifeline_fd: int
    load_first: bool = False
    board: Path
    metrics: Path
