"""When a service is ready: one rule for a worker and for the whole service."""

from __future__ import annotations

from typing import NamedTuple


class Readiness(NamedTuple):
    replicas_ready: int
    replicas: int
    reason: str  # why not; empty when ready
    out: tuple[str, ...] = ()  # of those that were warm, who takes no rows now

    @property
    def is_ready(self) -> bool:
        return not self.reason


class ReadinessRule:
    """Not ready until every replica has been warm once; after that only under the quorum, or while draining.

    A service that lost a replica serves on with the others: taking it away as well would lose them all.
    """

    def __init__(self, quorum: float) -> None:
        self._quorum = quorum
        self._was_complete = False

    def accept_what_is_there(self) -> None:
        """A successor came up without some of its replicas, which it need not wait for: the quorum decides at once."""
        self._was_complete = True

    def judge(self, ready: int, expected: int, *, is_draining: bool, out: tuple[str, ...] = ()) -> Readiness:
        if expected and ready >= expected:
            self._was_complete = True
        return Readiness(ready, expected, self._reason(ready, expected, is_draining), out if self._was_complete else ())

    def _reason(self, ready: int, expected: int, is_draining: bool) -> str:
        if is_draining:
            return "draining: the service is stopping"
        if not self._was_complete:
            return f"loading: {ready} of {expected} replicas are warm"
        if ready == 0 or ready / expected < self._quorum:  # a quotient: 0.55 * 20 is more than 11 in floating point
            return f"degraded: {ready} of {expected} replicas are ready, the quorum is {self._quorum:g}"
        return ""
