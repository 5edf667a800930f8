"""The bundle that is to be served, and the target in it."""

from __future__ import annotations

from pathlib import Path

from app.bundle import Bundle, TargetManifest
from app.errors import BundleError
from app.tools.doctor.check import Check, failed, ok

NO_TARGET = TargetManifest(target="null", engine={}, precision="none", buckets=[64], tolerance=1.0)


def read(path: Path) -> tuple[Check, Bundle | None]:
    if not path.is_dir():
        return failed("bundle", f"{path} is no directory", "name the folder with bundle.json in it: --bundle"), None
    try:
        bundle = Bundle(path)
    except BundleError as error:
        return failed("bundle", str(error), "copy the bundle again, or compile it again"), None
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
