"""The reference engine: PyTorch in float32, on CUDA where there is a device, else on the CPU."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from app.bundle import TargetManifest
from app.errors import BackendError

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

PROGRAM = "encoder.pt2"


class TorchBackend:
    """Loads ``encoder.pt2``, which takes rows of any length."""

    def __init__(self, directory: Path, target: TargetManifest) -> None:
        self._path = directory / PROGRAM
        self._buckets = target.buckets

    def load(self, core: int) -> TorchModel:
        try:
            import torch
            from torch.export.passes import move_to_device_pass
        except ImportError as error:
            raise BackendError(
                "target torch: PyTorch 2.8 or newer isn't installed; install it with: make install, or "
                "pip install -e '.[train]'"
            ) from error
        # One thread a replica: threads of one matmul would take the cores of the other replicas.
        torch.set_num_threads(1)
        device = (
            torch.device("cuda", core % torch.cuda.device_count()) if torch.cuda.is_available() else torch.device("cpu")
        )
        try:
            program = move_to_device_pass(torch.export.load(self._path), device)
        except Exception as error:  # torch raises whatever the format's reader met first
            raise BackendError(f"target torch: {self._path} can't be loaded: {error}") from error
        return TorchModel(program.module(), device)


class TorchModel:
    """One copy of the weights on one device."""

    def __init__(self, module: torch.nn.Module, device: torch.device) -> None:
        import torch

        self._torch = torch
        self._module = module
        self._device = device

    def forward(
        self, hidden: NDArray[np.float32], mask: NDArray[np.float32], pool: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        torch = self._torch
        with torch.inference_mode():
            row = (torch.from_numpy(array).to(self._device) for array in (hidden, mask, pool))
            logits: NDArray[np.float32] = self._module(*row).cpu().numpy()
        return logits

    def close(self) -> None:
        del self._module
