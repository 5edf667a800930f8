"""Another release in place: every worker is replaced by one that serves it, one after the other, or none is.

On a CPU the successor loads beside the worker that it replaces, which goes when it is warm. A NeuronCore has one owner,
so there the worker has to go first; the others serve meanwhile. Either way a worker that goes takes no new connection
and ends its own as any server does, so that no request is lost.
"""

from __future__ import annotations

import asyncio
import time

from app.child import Child
from app.errors import QueryIntentError
from app.fleet import LOOK_S, Fleet
from app.releases import Release


class SwapFailed(QueryIntentError):
    """The message says why. What served before serves again."""


class Swap:
    """``one_owner``: what a worker has, its successor can't have at the same time. Then ``quorum`` of the replicas must
    be left without a worker, and up within ``patience_s``, before it goes."""

    def __init__(self, fleet: Fleet, *, one_owner: bool, quorum: float, patience_s: float) -> None:
        self._fleet = fleet
        self._one_owner = one_owner
        self._quorum = quorum
        self._patience_s = patience_s

    def check(self) -> None:
        """Raises ``SwapFailed`` where no swap can be, whichever release it is."""
        workers = len(self._fleet.members)
        if self._one_owner and (workers == 1 or (workers - 1) / workers < self._quorum):
            raise SwapFailed(
                f"a worker has to give its cores up before its successor can load, and without one of {workers} "
                f"fewer than the quorum of {self._quorum:g} would serve; start a new instance instead"
            )

    async def to(self, release: Release) -> None:
        """Raises ``SwapFailed`` when a worker can't serve ``release``; golden answers are asked for as at any start."""
        before = [child.release for child in self._fleet.members]
        for index in range(len(before)):
            if problem := await self._replace(index, release):
                back = [await self._replace(done, before[done]) for done in reversed(range(index))]
                raise SwapFailed("; ".join(filter(None, [problem, *back])))

    async def _replace(self, index: int, release: Release) -> str:
        """Why it could not be, if so; then ``index`` is served as before."""
        old = self._fleet.members[index]
        new = self._fleet.successor(old, release)
        if self._one_owner:
            return await self._one_after_the_other(old, new)
        if problem := await self._fleet.start(new):
            return problem
        self._fleet.members[index] = new
        await self._fleet.retire(old)
        return ""

    async def _one_after_the_other(self, old: Child, new: Child) -> str:
        if problem := await self._wait_for_the_others(old):
            return problem
        await self._fleet.retire(old)
        problem = await self._fleet.start(new)
        if problem:
            again = self._fleet.successor(new, old.release)
            again.was_ready = True  # so it is started again, if it should not come up, and no reason to give up
            await self._fleet.start(again)
            new = again
        self._fleet.members[old.index] = new
        return problem

    async def _wait_for_the_others(self, old: Child) -> str:
        fleet = self._fleet
        deadline = time.monotonic() + self._patience_s
        while (left := fleet.ready(without=old)) == 0 or left / fleet.replicas < self._quorum:
            if fleet.stopping.is_set() or time.monotonic() > deadline:
                return f"without worker {old.index} only {left} of {fleet.replicas} replicas would be ready"
            await asyncio.sleep(LOOK_S)
        return ""
