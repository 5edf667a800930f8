"""The bundle that is to be served, and the target in it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from app.bundle import Bundle, TargetManifest
from app.errors import BundleError
from app.releases import Releases
from app.tools.doctor.check import Check, failed, ok

NO_TARGET = TargetManifest(target="null", engine={}, precision="none", buckets=[64], tolerance=1.0)


def read(asked: str, copies: Path) -> tuple[Check, Bundle | None]:
    """The bundle that ``asked`` names as ``BUNDLE`` does; one in S3 is fetched into ``copies``."""
    try:
        path = Path(asked)
        bundle = Bundle(path if path.is_dir() else asyncio.run(Releases(copies).take(asked)).path, address=asked)
    except BundleError as error:
        remedy = "name a bundle with --bundle, or copy or compile this one again"
        return failed("bundle", str(error), remedy), None
    targets = ", ".join(bundle.targets) or "none"
    detail = f"{bundle.name}, targets {targets}, every file as released"
    return ok("bundle", detail, model=bundle.name, digest=bundle.digest, targets=bundle.targets), bundle


def target(bundle: Bundle, name: str) -> tuple[Check | None, TargetManifest | None]:
    """The check only where it fails. The null target is in every bundle."""
    if name == "null":
        return None, NO_TARGET
    try:
        return None, bundle.target(name)
    except BundleError as error:
        what, _, remedy = str(error).partition("; ")
        return failed("artefact", what, remedy or "compile the target again"), None
