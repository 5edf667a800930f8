"""A model bundle: one directory with everything to serve one version of a model, and a target a subdirectory.

``bundle.json`` says what the model is and holds the sha256 of every file; ``TARGET/target.json`` says how its compiled
form behaves. Loading checks all of it, so that what runs is what was released.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from app.bundle_files import MANIFEST as MANIFEST
from app.bundle_files import sha256 as sha256
from app.errors import BundleError
from app.packing import Embeddings, Pooling
from app.text import NORMALISER_VERSION

TARGET_MANIFEST = "target.json"
TOKENIZER = "tokenizer.json"
EMBEDDINGS = "embeddings.safetensors"

Probability = Annotated[float, Field(ge=0, le=1)]


class Strict(BaseModel):
    """A part of a manifest: what isn't known is refused."""

    # protected_namespaces: pydantic would otherwise warn about fields that start with "model".
    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())


class Label(Strict):
    """One class: its name on the wire, what it means in a sentence, and the group that pages switch on."""

    name: Annotated[str, Field(min_length=1)]
    definition: str
    group: Annotated[str, Field(min_length=1)]


class GoldenQuery(Strict):
    """A query with the probabilities (one a label) that the fp32 reference gave it when the bundle was made."""

    query: Annotated[str, Field(min_length=1)]
    probabilities: list[Probability]


class Manifest(Strict):
    """``bundle.json``."""

    format: Literal[1] = 1
    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")]
    version: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$")]
    task: Literal["query-intent"] = "query-intent"
    architecture: str
    normaliser: int
    max_tokens: Annotated[int, Field(ge=3, le=512)]  # special tokens included
    pooling: Pooling
    temperature: Annotated[float, Field(gt=0)]
    labels: Annotated[list[Label], Field(min_length=2)]
    label_priors: dict[str, Probability]
    abstain_threshold: Probability
    group_thresholds: dict[str, Probability] = {}  # asked of a group's confidence as well, where it has one
    golden: Annotated[list[GoldenQuery], Field(min_length=1)]
    quality: dict[str, Any] = {}
    lineage: dict[str, Any] = {}
    files: dict[str, str]  # path in the bundle -> sha256, TARGET folders included

    @model_validator(mode="after")
    def _labels_agree(self) -> Manifest:
        names = [label.name for label in self.labels]
        if len(set(names)) != len(names):
            raise ValueError(f"labels: a name occurs twice in {names}")
        if set(self.label_priors) != set(names):
            raise ValueError(f"label_priors: has {sorted(self.label_priors)}, labels are {sorted(names)}")
        if unknown := sorted(set(self.group_thresholds) - set(self.groups)):
            raise ValueError(f"group_thresholds: has {unknown}, groups are {self.groups}")
        for golden in self.golden:
            if len(golden.probabilities) != len(names):
                raise ValueError(
                    f"golden query {golden.query!r}: {len(golden.probabilities)} probabilities for {len(names)} labels"
                )
        return self

    @property
    def groups(self) -> list[str]:
        """The groups in the order in which the labels name them first."""
        return list(dict.fromkeys(label.group for label in self.labels))


class TargetManifest(Strict):
    """``TARGET/target.json``: what was compiled, by what, and how far its answers may be from the reference."""

    target: Annotated[str, Field(pattern=r"^[a-z0-9]+$")]
    engine: dict[str, str]  # name -> version, of everything that made the artefacts
    precision: str
    buckets: Annotated[list[Annotated[int, Field(ge=3)]], Field(min_length=1)]
    one_query_a_row: bool = False  # S = 1, for a compiler that refuses more
    tolerance: Probability  # largest |Δp| of a golden query that a replica may show and still take traffic
    agreement: dict[str, Any] = {}  # measured against fp32 when it was compiled
    options: dict[str, Any] = {}

    @model_validator(mode="after")
    def _buckets_rise(self) -> TargetManifest:
        if self.buckets != sorted(set(self.buckets)):
            raise ValueError(f"buckets: must rise, got {self.buckets}")
        return self


class Bundle:
    """A checked bundle on disk. Raises ``BundleError`` from every method when the files don't hold what they should."""

    def __init__(self, path: Path, *, address: str | None = None) -> None:
        """``address`` is what errors call it, where ``path`` is a copy of what its operator knows."""
        self.path = path
        self._address = address or str(path)
        self.manifest = read_json(path / MANIFEST, Manifest, bundle=self._address)
        self.digest = sha256(path / MANIFEST)
        if self.manifest.normaliser != NORMALISER_VERSION:
            raise BundleError(
                f"bundle {self._address}: made for normaliser {self.manifest.normaliser}, this version has "
                f"{NORMALISER_VERSION}: train and compile again with this version"
            )
        self._check_files()

    def __repr__(self) -> str:
        return f"<Bundle {self.name} at {self.path}: targets {', '.join(self.targets) or 'none'}>"

    @property
    def name(self) -> str:
        """``name@version``, as in every reply."""
        return f"{self.manifest.name}@{self.manifest.version}"

    @property
    def targets(self) -> list[str]:
        suffix = f"/{TARGET_MANIFEST}"
        return [name.removesuffix(suffix) for name in self.manifest.files if name.endswith(suffix)]

    def target(self, name: str) -> TargetManifest:
        if name not in self.targets:
            raise BundleError(
                f"bundle {self._address}: has no target {name!r}, only {', '.join(self.targets) or 'none'}; "
                f"make it with: query-intent compile --target {name}"
            )
        target = read_json(self.path / name / TARGET_MANIFEST, TargetManifest, bundle=f"{self._address}/{name}")
        if target.target != name:
            raise BundleError(
                f"bundle {self._address}: folder {name} holds what was compiled for target {target.target}, which "
                f"can't stand in for it; make it with: query-intent compile --target {name}"
            )
        if target.buckets[-1] < self.manifest.max_tokens:
            raise BundleError(
                f"bundle {self._address}, target {name}: largest bucket {target.buckets[-1]} is under "
                f"max_tokens {self.manifest.max_tokens}"
            )
        return target

    def embeddings(self) -> Embeddings:
        """The embedding tables, widened to float32 once so that no row pays for it."""
        path = self.path / EMBEDDINGS
        try:
            tables = load_file(path)
            embeddings = Embeddings(tables["word"].astype(np.float32), tables["position"].astype(np.float32))
        except (SafetensorError, KeyError) as error:
            raise BundleError(f"bundle {self._address}: {EMBEDDINGS} can't be read: {error}") from error
        if (positions := len(embeddings.position)) < self.manifest.max_tokens:
            raise BundleError(
                f"bundle {self._address}: {EMBEDDINGS} has {positions} positions, max_tokens is "
                f"{self.manifest.max_tokens}"
            )
        return embeddings

    def _check_files(self) -> None:
        for required in (TOKENIZER, EMBEDDINGS):
            if required not in self.manifest.files:
                raise BundleError(f"bundle {self._address}: {MANIFEST} lists no {required}")
        for name, expected in self.manifest.files.items():
            path = self.path / name
            if not path.is_file():
                raise BundleError(f"bundle {self._address}: {name} is missing")
            if (actual := sha256(path)) != expected:
                raise BundleError(
                    f"bundle {self._address}: {name} has sha256 {actual[:12]}…, not {expected[:12]}… as released"
                )


def write_embeddings(path: Path, *, word: np.ndarray[Any, Any], position: np.ndarray[Any, Any]) -> None:
    """Write ``word`` [V, E] and ``position`` [P, E] (token type 0 added, offset applied) as float16."""
    save_file({"word": word.astype(np.float16), "position": position.astype(np.float16)}, path / EMBEDDINGS)


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Write ``bundle.json`` with the digests of every file below ``path`` as they are now."""
    files = sorted(file for file in path.rglob("*") if file.is_file() and file.name != MANIFEST)
    digests = {file.relative_to(path).as_posix(): sha256(file) for file in files}
    text = manifest.model_copy(update={"files": digests}).model_dump_json(indent=1)
    (path / MANIFEST).write_text(text + "\n", encoding="utf-8")


_M = TypeVar("_M", bound=Strict)


def read_json(path: Path, model: type[_M], *, bundle: str | None = None) -> _M:
    """The manifest at ``path``, checked. Raises ``BundleError`` naming the file and the first field that is wrong.

    ``bundle`` is what errors call its folder.
    """
    folder = bundle or path.parent
    try:
        return model.model_validate_json(path.read_bytes())
    except OSError as error:
        raise BundleError(f"bundle {folder}: {path.name} can't be read: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "content"
        raise BundleError(f"bundle {folder}: {path.name}: {where}: {first['msg']}") from error
