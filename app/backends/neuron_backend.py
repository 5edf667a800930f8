"""What both generations of Inferentia share: loading a copy of the model onto the cores that it is meant for.

The process sees its own slice of the machine's cores (``NEURON_RT_VISIBLE_CORES``, set before it started) and counts
them from 0.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

from app.backends.neuron_artefact import Artefact, check_graph
from app.backends.neuron_model import NeuronModel
from app.backends.neuron_owners import who_holds
from app.backends.neuron_status import UNINITIALISED, Action, status_of
from app.bundle import TargetManifest
from app.errors import BackendError
from app.neuron_devices import VISIBLE_CORES, parse_cores
from app.neuron_sdk import NeuronSdk

# Placement is a context of the whole process, not of a thread: one load at a time, of all replicas. What a replica does
# then, its canary and warm-up, runs beside the load of the next.
_PLACING = threading.Lock()
LOAD_ATTEMPTS = 2  # where memory was short: a model that is being unloaded may still hold it


class Binding(NamedTuple):
    """What the adapter calls of an SDK, under the names that its generation has for it."""

    torch: Any
    cores_context: Callable[..., AbstractContextManager[Any]]  # (start_nc=, nc_count=), around torch.jit.load
    data_parallel: Callable[..., Any]  # (module, device_ids=, dim=)


class NeuronBackend:
    """Loads ``row_T.pt`` for every bucket onto a replica's core; with a ``span``, onto that many cores for one replica.

    ``bind`` imports the SDK, which is done in the first load.
    """

    def __init__(
        self, directory: Path, target: TargetManifest, sdk: NeuronSdk, bind: Callable[[], Binding], *, span: int = 1
    ) -> None:
        self._artefact = Artefact.read(directory, target, sdk)
        self._sdk = sdk
        self._bind = bind
        self._span = span
        if span > 1 and not (self._artefact.one_query_a_row and self._artefact.pipeline_cores == 1):
            raise BackendError(
                f"target {sdk.target}: data-parallel splits a batch by its first dimension, so it needs rows of one "
                "query (compile with --one-query-a-row) on one core each; or serve with QUERY_INTENT_PLACEMENT=replicas"
            )

    def load(self, core: int) -> NeuronModel:
        with _PLACING:
            binding = self._open()
            start = core * self._artefact.pipeline_cores
            place = self._name(range(start, start + max(self._span, self._artefact.pipeline_cores)))
            modules = {}
            for tokens in self._artefact.buckets:
                modules[tokens] = self._load_bucket(binding, self._artefact.path(tokens), start, place)
            return NeuronModel(modules, self._artefact, torch=binding.torch, place=place)

    def _open(self) -> Binding:
        if (problem := self._sdk.problem()) is not None:
            raise BackendError(f"target {self._sdk.target}: {problem}")
        try:
            binding = self._bind()
        except Exception as error:  # a library that isn't found is an OSError, a protobuf too new a TypeError, …
            raise BackendError(f"target {self._sdk.target}: {self._sdk.import_problem(error)}") from error
        # The device computes; threads of the host's operators would only take the event loop's core.
        binding.torch.set_num_threads(1)
        return binding

    def _load_bucket(self, binding: Binding, path: Path, start: int, place: str) -> Any:
        for attempt in range(1, LOAD_ATTEMPTS + 1):
            try:
                with binding.cores_context(start_nc=start, nc_count=self._artefact.pipeline_cores):
                    module = binding.torch.jit.load(str(path))
                check_graph(module, path)
                if self._span == 1:
                    return module
                spread = binding.data_parallel(module, device_ids=list(range(self._span)), dim=0)
                # Every call brings one row a core, as compiled; splitting further is what fails on Inferentia 1.
                spread.disable_dynamic_batching()
                return spread
            except (RuntimeError, ValueError) as error:
                status = status_of(error)
                if status is not None and status.action is Action.RETRY and attempt < LOAD_ATTEMPTS:
                    continue
                raise self._load_failure(error, path, place) from error
        raise AssertionError("a load neither failed nor succeeded. This is a bug.")

    def _load_failure(self, error: Exception, path: Path, place: str) -> BackendError:
        where = f"target {self._sdk.target}: {place}"
        if UNINITIALISED.search(str(error)):
            return BackendError(f"{where} can't be opened: {who_holds(_visible(), self._sdk)}")
        status = status_of(error)
        if status is None:
            return BackendError(f"{where}: {path} can't be loaded: {error}")
        advice = {
            Action.RETRY: "serve fewer buckets or a smaller model, since a core holds a copy of every bucket",
            Action.REFUSE: f"compile again, with the compiler of this {self._sdk.distribution} and for these cores",
            Action.REPLACE_HOST: "REPLACE THIS HOST",
        }.get(status.action, "start again, and replace the host if it comes back")
        return BackendError(f"{where}: {path.name} can't be loaded, {status}; {advice}")

    def _name(self, cores: range) -> str:
        """The machine's own numbers of this process's ``cores``, where it knows them."""
        visible = _visible()
        numbers = [visible[core] if core < len(visible) else core for core in cores]
        return f"NeuronCore {numbers[0]}" if len(numbers) == 1 else f"NeuronCores {numbers[0]}-{numbers[-1]}"


def _visible() -> list[int]:
    text = os.environ.get(VISIBLE_CORES)
    return parse_cores(text) if text else []
