"""Where a bundle comes from: a folder, or a prefix of an S3 bucket with the digest of what was released there.

``BUNDLE`` is either, or the name of a file whose first line is: so another model can be named while the service runs.
"""

from __future__ import annotations

import asyncio
import re
import shutil
from pathlib import Path
from typing import Protocol

from app.bundle_files import MANIFEST
from app.errors import BundleError

S3 = "s3://"
_S3_ADDRESS = re.compile(
    r"s3://(?P<bucket>[a-z0-9.-]{3,63})/(?P<prefix>[^#?]*[^#?/])/?#sha256=(?P<digest>[0-9a-f]{64})"
)


class Source(Protocol):
    """``digest`` is the one that its ``bundle.json`` must have; None: whichever it has."""

    digest: str | None

    async def fetch(self, name: str, into: Path) -> None:
        """Write the bundle's file ``name`` to the path ``into``. Raises ``BundleError`` when it can't be read."""


class Folder:
    digest: str | None = None

    def __init__(self, address: str) -> None:
        self._address = address
        # Resolved once: a link that is moved meanwhile must not mix two bundles.
        self._path = Path(address).resolve()

    async def fetch(self, name: str, into: Path) -> None:
        path = self._path / name
        try:
            path.open("rb").close()
        except OSError as error:
            is_missing = isinstance(error, FileNotFoundError) and name != MANIFEST
            problem = "is missing" if is_missing else f"can't be read: {error.strerror}"
            raise BundleError(f"bundle {self._address}: {name} {problem}") from None
        await asyncio.to_thread(shutil.copyfile, path, into)


def check_address(text: str) -> str:
    """``text``; raises ``ValueError`` when it is meant for S3 and is no address there."""
    if text.startswith(S3) and _S3_ADDRESS.fullmatch(text) is None:
        raise ValueError(
            "a bundle in S3 is s3://BUCKET/PREFIX#sha256=DIGEST, with the 64 hex digits that sha256sum prints for its "
            f"{MANIFEST}"
        )
    return text


def find_source(bundle: str) -> tuple[str, Source]:
    """The address that ``bundle`` names now, and what is there. Raises ``BundleError`` when that is nothing usable."""
    address = bundle if bundle.startswith(S3) or not Path(bundle).is_file() else _read_address(Path(bundle))
    match = _S3_ADDRESS.fullmatch(address)
    if match is None:
        return address, Folder(address)
    try:
        from app.bucket import Bucket
    except ModuleNotFoundError as error:
        raise BundleError(f"bundle {address}: {error.name} isn't installed: pip install 'query-intent[s3]'") from None
    return address, Bucket(address, **match.groupdict())


def _read_address(file: Path) -> str:
    address = file.read_text(encoding="utf-8", errors="replace").partition("\n")[0].strip()
    try:
        check_address(address)
    except ValueError as error:
        raise BundleError(f"bundle {file}: its first line is {address!r}; {error}") from None
    if not address or not (address.startswith(S3) or Path(address).is_dir()):
        raise BundleError(f"bundle {file}: its first line is {address!r}, which is no folder and no address in S3")
    return address
