"""The files of a bundle as bytes with digests, all that who moves one needs. No numpy, unlike ``app.bundle``."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path, PurePosixPath

from app.errors import BundleError

MANIFEST = "bundle.json"


def sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def listed_files(manifest: Path, *, source: str) -> dict[str, str]:
    """Path in the bundle -> sha256, as ``manifest`` has it; ``source`` is what errors call the bundle.

    Raises ``BundleError`` when that isn't what it has, or a path leads out of the bundle.
    """
    try:
        files = json.loads(manifest.read_bytes())["files"]
        listed = {str(name): str(digest) for name, digest in files.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise BundleError(f"bundle {source}: {MANIFEST} lists no files; is it a bundle's?") from None
    for name in listed:
        if not name or PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise BundleError(f"bundle {source}: {MANIFEST} lists {name!r}, which is not inside of the bundle")
    return listed
