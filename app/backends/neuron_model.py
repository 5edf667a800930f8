"""Rows on NeuronCores: one call a row, and what a failed call says about the core."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from app.backends.neuron_artefact import Artefact
from app.backends.neuron_status import UNINITIALISED, Action, status_of
from app.errors import BackendError, CoreFailed, Remedy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

REMEDIES = {
    Action.RETRY: Remedy.BACK_OFF,
    Action.DROP_CORE: Remedy.RETIRE,
    Action.REPLACE_HOST: Remedy.RETIRE,
    Action.RESTART: Remedy.RESTART,
}


class NeuronModel:
    """One loaded module a bucket, all on the same cores, which ``place`` names for a person."""

    def __init__(
        self, modules: Mapping[int, Callable[..., Any]], artefact: Artefact, *, torch: Any, place: str
    ) -> None:
        self._modules = dict(modules)
        self._inputs = [(name, getattr(torch, dtype)) for name, dtype in artefact.inputs]
        self._torch = torch
        self._place = place

    def forward(
        self, hidden: NDArray[np.float32], mask: NDArray[np.float32], pool: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Raises ``CoreFailed`` where the runtime says that the core is to blame, else ``BackendError``."""
        torch = self._torch
        row = {"hidden": hidden, "mask": mask, "pool": pool}
        # No copy where the dtype is float32: the call is over before the buffers are written again.
        inputs = [torch.from_numpy(row[name]).to(dtype) for name, dtype in self._inputs]
        try:
            with torch.no_grad():
                result = self._modules[hidden.shape[1]](*inputs)
        except RuntimeError as error:
            raise failure_of(error, self._place) or refusal_of(error, self._place) from error
        result = result[0] if isinstance(result, (tuple, list)) else result
        logits: NDArray[np.float32] = result.float().numpy()
        return logits

    def close(self) -> None:
        """Unload: a model leaves its core with its last reference. The core itself stays this process's to its end."""
        self._modules.clear()


def failure_of(error: RuntimeError, place: str) -> CoreFailed | None:
    """What an error of a running row says about its core; None where the row itself may be to blame."""
    status = status_of(error)
    if status is None:
        if UNINITIALISED.search(str(error)):
            return CoreFailed(f"{place}: the Neuron runtime is gone", fault="NRT_UNINITIALIZED", remedy=Remedy.RESTART)
        return None
    remedy = REMEDIES.get(status.action)
    if remedy is None:
        return None
    advice = {
        Action.REPLACE_HOST: "; REPLACE THIS HOST: nothing on it mends a broken device",
        Action.DROP_CORE: "; replace the host if it comes back after the worker has been started anew",
    }
    return CoreFailed(f"{place}: {status}{advice.get(status.action, '')}", fault=status.name, remedy=remedy)


def refusal_of(error: RuntimeError, place: str) -> BackendError:
    """What else ended a row: a query's fault, if it runs rows already; the artefact's, if that is its first."""
    status, lines = status_of(error), str(error).strip().splitlines()
    if status is None:
        return BackendError(f"{place}: {' '.join(lines[-1:])}")
    said = next((line.strip() for line in reversed(lines) if status_of(RuntimeError(line)) == status), "")
    advice = "; compile the target again, with what is installed here" if status.action is Action.REFUSE else ""
    return BackendError(f"{place}: {status}{advice} ({said})")
