"""What SIGHUP asks for: ``BUNDLE`` is read again, and what it names now is swapped in. No route can ask for it."""

from __future__ import annotations

import asyncio
import logging
import time

from app.errors import QueryIntentError
from app.fleet import Fleet
from app.releases import Release, Releases
from app.swap import Swap

logger = logging.getLogger(__name__)


class SwapRequests:
    """``current`` is what the fleet serves; ``swap`` brings another one in. One at a time, those who ask meanwhile get
    one more together."""

    def __init__(self, bundle: str, current: Release, *, releases: Releases, fleet: Fleet, swap: Swap) -> None:
        self._bundle = bundle
        self._current = current
        self._releases = releases
        self._fleet = fleet
        self._swap = swap
        self._asked = asyncio.Event()
        self._is_busy = False

    def ask(self) -> None:
        if self._is_busy:
            logger.warning("SIGHUP during a bundle swap: BUNDLE will be read again after it")
        self._asked.set()

    async def run_task(self) -> None:
        while True:
            await self._asked.wait()
            self._asked.clear()
            self._is_busy = True
            await self._answer()
            self._is_busy = False

    async def _answer(self) -> None:
        """One swap, and a record of what it was from and to and how it ended."""
        started = time.monotonic()
        current = self._current
        audit = {"from_digest": current.digest, "from_bundle": current.address, "result": "refused", "problem": ""}
        try:
            release = await self._releases.take(self._bundle)
            audit |= {"to_digest": release.digest, "to_bundle": release.address}
            if release.digest == current.digest:
                audit["result"] = "unchanged"
                return
            try:
                self._swap.check()
                audit["result"] = "rolled back"
                await self._swap.to(release)
                self._current, audit["result"] = release, "done"
            finally:
                self._drop_unused(current, release)
        except QueryIntentError as error:
            audit["problem"] = str(error)
        except asyncio.CancelledError:
            audit["problem"] = "the service is stopping"
            raise
        finally:
            level = logging.ERROR if audit["problem"] else logging.INFO
            logger.log(level, "bundle swap", extra=audit | {"seconds": round(time.monotonic() - started, 2)})

    def _drop_unused(self, *releases: Release) -> None:
        for release in releases:
            if all(child.release != release for child in self._fleet.members):
                self._releases.drop(release)
