"""What the service asks of an engine: load one copy of the model on one core, then run rows on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Model(Protocol):
    """One loaded copy of the model on one core. One thread drives it, so it needs no lock."""

    def forward(
        self, hidden: NDArray[np.float32], mask: NDArray[np.float32], pool: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Logits [S, labels] of a row: ``hidden`` [1, T, E], ``mask`` [1, 1, T, T], ``pool`` [S, T], T being a bucket.

        A model that spans n cores takes n rows of one query: [n, T, E], [n, 1, T, T], [n, T] → [n, labels].

        The arrays are the caller's buffers and are written over after the call: keep no reference to them.
        Raises ``CoreFailed`` when the core is to blame, so that the row runs elsewhere, and otherwise whatever the
        engine raises; the replica decides what that means.
        """
        ...

    def close(self) -> None:
        """Give the core back. Called once, by the thread that drives the model."""
        ...


class Backend(Protocol):
    """An engine with the compiled target of one bundle."""

    def load(self, core: int) -> Model:
        """Load a copy on ``core`` (0 to n - 1 of this worker's own cores). Blocks for up to seconds.

        Raises ``BackendError`` when the engine or the device isn't there.
        """
        ...
