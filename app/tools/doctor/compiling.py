"""Whether the compiler works here, on a model that takes it seconds."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping

from app.neuron_devices import NUM_CORES, VISIBLE_CORES
from app.tools.doctor.check import Check, failed, ok

TIMEOUT_S = 300.0
LAST_LINES = 5


def tiny_model(target: str, core: int, environ: Mapping[str, str], *, timeout_s: float = TIMEOUT_S) -> Check:
    """Compile it and run it on ``core``."""
    environ = {name: value for name, value in environ.items() if name != NUM_CORES} | {VISIBLE_CORES: str(core)}
    command = [sys.executable, "-m", "app.tools.doctor.tiny_model", target]
    remedy = "see what the compiler said above; it needs 8 GiB of memory, and the pins of constraints/"
    try:
        done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired:
        return failed("tiny compile", f"not done after {timeout_s:g} s", remedy)
    *_, last = done.stdout.splitlines() or [""]
    try:
        found = json.loads(last)
    except json.JSONDecodeError:
        found = {"error": f"it ended with exit code {done.returncode}"}
    if "error" in found:
        said = "\n".join(done.stderr.splitlines()[-LAST_LINES:])
        return failed("tiny compile", f"{found['error']}\n{said}".rstrip(), remedy, stderr=done.stderr)
    detail = f"two matrices in {found['compile_s']} s, on core {core} within {found['difference']} of float32"
    return ok("tiny compile", detail, **found)
