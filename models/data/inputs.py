"""The folder of raw data sets: which files are there, and are they the ones the readers were written for?"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

CHECKSUMS = "SHA256SUMS"


class InputError(ValueError):
    """A raw file is missing or differs from the published checksum; the message names each."""


def verify_inputs(folder: Path, names: Iterable[str]) -> str:
    """Check each file in ``names`` against ``folder/SHA256SUMS``.

    Returns one sha256 over the names and checksums of all of them: the identity of the raw data, for a checkpoint's
    lineage. Raises ``InputError`` listing everything that is missing or different at once.
    """
    expected = _read_checksums(folder)
    troubles: list[str] = []
    identity = hashlib.sha256()
    for name in sorted(set(names)):
        path = folder / name
        if name not in expected:
            troubles.append(f"{name}: not listed in {CHECKSUMS}")
        elif not path.is_file():
            troubles.append(f"{name}: missing")
        elif hashlib.sha256(path.read_bytes()).hexdigest() != expected[name]:
            troubles.append(f"{name}: its sha256 differs from the one in {CHECKSUMS}")
        else:
            identity.update(f"{expected[name]}  {name}\n".encode())
    if troubles:
        raise InputError(f"{folder}: {len(troubles)} files can't be used:\n  " + "\n  ".join(troubles))
    return identity.hexdigest()


def _read_checksums(folder: Path) -> dict[str, str]:
    """``SHA256SUMS`` as written by sha256sum: hexadecimal digest, two spaces, file name."""
    path = folder / CHECKSUMS
    if not path.is_file():
        raise InputError(f"{folder}: no {CHECKSUMS} there; is this the folder of raw data sets?")
    pairs = (line.split(maxsplit=1) for line in path.read_text(encoding="utf-8").splitlines() if line.strip())
    return {name.strip().lstrip("*"): checksum for checksum, name in pairs}
