"""Two matrices, compiled by this machine's compiler and run on one of its cores.

    python -m app.tools.doctor.tiny_model inf1

A process of its own, since whoever imports an SDK keeps its cores to the end. The last line of stdout is JSON.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from app.backends.neuron_artefact import check_graph
from app.neuron_sdk import SDKS

SIZE = 64
# Of numbers around 1, rounded to bfloat16 between two matrices.
TOLERANCE = 0.05


def main(target: str) -> dict[str, Any]:
    """Seconds to compile, and how far the chip's answer lies from float32 on the host; ``error`` where one failed."""
    import torch

    load: Any = torch.jit.load  # untyped
    sdk = import_module(SDKS[target].module)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(SIZE, SIZE), torch.nn.Tanh(), torch.nn.Linear(SIZE, SIZE)).eval()
    row = torch.randn(1, SIZE)
    with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
        expected = model(row)
        started = time.monotonic()
        traced = sdk.trace(model, (row,))
        found: dict[str, Any] = {"compile_s": round(time.monotonic() - started, 1)}
        path = Path(folder) / "tiny.pt"
        check_graph(traced, path)
        torch.jit.save(traced, str(path))
        answer = load(str(path))(row)
        answer = answer[0] if isinstance(answer, (tuple, list)) else answer
        difference = float((answer - expected).abs().max())
    found["difference"] = round(difference, 5)
    if not difference <= TOLERANCE:  # not a number is no answer either
        found["error"] = f"the chip's answer differs from float32 by {difference:.3f}, allowed are {TOLERANCE}"
    return found


if __name__ == "__main__":
    try:
        result = main(sys.argv[1])
    except Exception as error:  # whatever compiler, runtime or torch raises is what this is here to find
        result = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(result), flush=True)
