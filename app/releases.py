"""Releases: bundles as they were when they were taken, in a folder of the supervisor's own.

Nobody else changes them. So a worker that starts late serves what its siblings do, whatever has become of the folder or
the link that ``BUNDLE`` names, and there is always something to go back to.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from app.bundle_files import MANIFEST, listed_files, sha256
from app.bundle_sources import Source, find_source
from app.errors import BundleError


@dataclass(frozen=True, slots=True)
class Release:
    """``path`` holds what ``address`` did; ``digest`` is the sha256 of its ``bundle.json``."""

    address: str
    digest: str
    path: Path


class Releases:
    """Kept in ``folder``, each under its digest."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def take(self, bundle: str) -> Release:
        """What ``bundle`` names now. Raises ``BundleError`` when that isn't whole or as released, or there is no room.

        Files are written beside and moved when all of them are right, so that no release is ever half of one.
        """
        address, source = find_source(bundle)
        try:
            part = Path(tempfile.mkdtemp(prefix="part-", dir=self._folder))
            try:
                return await self._take(address, source, part)
            finally:
                shutil.rmtree(part, ignore_errors=True)
        except OSError as error:
            raise BundleError(f"bundle {address}: can't be kept in {self._folder}: {error.strerror}") from None

    async def _take(self, address: str, source: Source, part: Path) -> Release:
        await source.fetch(MANIFEST, part / MANIFEST)
        digest = sha256(part / MANIFEST)
        if source.digest not in (None, digest):
            raise BundleError(f"bundle {address}: {MANIFEST} there has sha256 {digest}, not {source.digest}")
        release = Release(address, digest, self._folder / digest)
        if release.path.exists():
            return release
        for name, expected in listed_files(part / MANIFEST, source=address).items():
            file = part / name
            file.parent.mkdir(parents=True, exist_ok=True)
            await source.fetch(name, file)
            if (actual := await asyncio.to_thread(sha256, file)) != expected:
                raise BundleError(
                    f"bundle {address}: {name} has sha256 {actual[:12]}…, not {expected[:12]}… as released"
                )
        await asyncio.to_thread(part.rename, release.path)
        return release

    def drop(self, release: Release) -> None:
        shutil.rmtree(release.path, ignore_errors=True)
