"""An environment for each peer, made once from its pinned requirements."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
HOME = HERE.parent.parent / ".peers"  # ignored by git


def python_of(peer: str) -> Path:
    """The interpreter of ``peer``'s environment, which is made anew when ``<peer>.txt`` has changed."""
    requirements, folder = HERE / f"{peer}.txt", HOME / peer
    python, stamp = folder / "bin" / "python", folder / "requirements.sha256"
    digest = hashlib.sha256(requirements.read_bytes()).hexdigest()
    if stamp.is_file() and stamp.read_text() == digest:
        return python
    print(f"making the environment of {peer} in {folder}", file=sys.stderr)
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", "-r", requirements], check=True)
    stamp.write_text(digest)
    return python
