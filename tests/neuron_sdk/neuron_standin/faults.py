"""What is wrong with a core, read before each load and each execution, so that a running process can be hit.

The file ``faults/N`` of the state folder holds one line:

    1004        every execution on core N ends with this status; 5 does after the runtime's time-out, and from then on
                the core is bad for its process, whatever the file says later
    1004*2      the next two do, then the core is well
    load:4      every load does
    garbage     executions give numbers of the right shape that are wrong
    hang        executions don't come back until the file is changed
    slow:2.5    executions take so many times as long
"""

from __future__ import annotations

import contextlib
from pathlib import Path


def current_fault(state: Path, core: int, *, loading: bool = False) -> str | None:
    """What is wrong now with an execution, or a load; a counted one is one less afterwards."""
    path = _path(state, core)
    try:
        what, _, count = path.read_text().strip().partition("*")
    except FileNotFoundError:
        return None
    if what.startswith("load:") != loading:
        return None
    if count:
        set_fault(state, core, f"{what}*{int(count) - 1}" if int(count) > 1 else None)
    return what.removeprefix("load:") or None


def set_fault(state: Path, core: int, what: str | None) -> None:
    """Replaced in one step: whoever reads sees the old or the new one."""
    path = _path(state, core)
    if what is None:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".new").write_text(what)
    path.with_suffix(".new").replace(path)


def _path(state: Path, core: int) -> Path:
    return state / "faults" / str(core)
