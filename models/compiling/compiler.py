"""From a checkpoint to a bundle with one target more: everything is made in a draft, proved, and then put in place."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from app.bundle import (
    EMBEDDINGS,
    MANIFEST,
    TARGET_MANIFEST,
    TOKENIZER,
    Bundle,
    GoldenQuery,
    Manifest,
    write_embeddings,
    write_manifest,
)
from app.fallback import FOLDER as FALLBACK
from app.fallback import Fallback
from models.compiling.agreement import Agreement, largest_difference
from models.compiling.draft import draft
from models.compiling.golden import choose_golden
from models.compiling.order import CompileError, Order, Queries
from models.compiling.reference import Reference
from models.compiling.source import Source
from models.compiling.summary import Summary
from models.compiling.target_maker import TargetMaker

# float32 twice; more means another checkpoint.
SAME_CHECKPOINT = 1e-4


def compile_bundle(source: Source, order: Order, queries: Queries, place: Path, summary: Summary) -> Agreement:
    """Make the bundle at ``place``, or put a target or the fallback into it; either whole or not at all.

    Raises ``CompileError``, ``CalibrationError``, ``BundleError`` or ``BackendError``; then ``place`` is as it was.
    """
    if order.buckets[-1] < source.max_tokens:
        raise CompileError(f"largest bucket {order.buckets[-1]} is under the checkpoint's {source.max_tokens} tokens")
    summary.notes(source.assumed)
    queries = _without_calibration(queries, summary)
    reference = Reference(source)
    with draft(place) as folder:
        if (folder / MANIFEST).is_file():
            manifest = _known_manifest(folder, reference)
        else:
            golden = queries.golden or choose_golden(
                queries.holdout,
                reference.probabilities,
                lambda text: len(reference.encode([text])[0]) <= order.buckets[0],
            )
            manifest = _new_manifest(source, order, reference, golden)
            shutil.copyfile(source.tokenizer, folder / TOKENIZER)
            write_embeddings(folder, word=reference.embeddings.word, position=reference.embeddings.position)
            (folder / EMBEDDINGS).chmod(0o644)  # safetensors writes for the owner alone; a container has another user
        if order.target == FALLBACK:
            from models.compiling.fallback import FallbackMaker  # SciPy, which no target needs

            found = FallbackMaker(source, order, reference, summary).make(folder / FALLBACK, queries)
        else:
            target, found = TargetMaker(source, order, reference, summary).make(
                folder / order.target, queries, manifest.golden
            )
            text = target.model_dump_json(indent=1) + "\n"
            (folder / order.target / TARGET_MANIFEST).write_text(text, encoding="utf-8")
        write_manifest(folder, manifest)
        _read_back(folder, order.target)
    summary.note(f"{place}: {manifest.name}@{manifest.version}, {order.target} written")
    return found


def _read_back(folder: Path, target: str) -> None:
    """What is released can be loaded."""
    bundle = Bundle(folder)
    if target == FALLBACK:
        Fallback(bundle)
    else:
        bundle.target(target)


def _without_calibration(queries: Queries, summary: Summary) -> Queries:
    """Hold out only what calibration doesn't see."""
    seen = set(queries.calibration)
    holdout = [query for query in queries.holdout if query not in seen]
    if not holdout:
        raise CompileError("every held-out query is a calibration query: nothing is left to compare on")
    if shared := len(queries.holdout) - len(holdout):
        summary.note(f"{shared} held-out queries are calibration queries, and left out")
    labelled = [query for query in queries.labelled if query.text not in seen]
    return queries._replace(holdout=holdout, labelled=labelled)


def _new_manifest(source: Source, order: Order, reference: Reference, golden: Sequence[str]) -> Manifest:
    answers = reference.probabilities(golden).tolist()
    return Manifest(
        name=order.name,
        version=order.version,
        architecture=source.converted.architecture,
        normaliser=source.normaliser,
        max_tokens=source.max_tokens,
        pooling=source.converted.pooling,
        temperature=source.temperature,
        labels=source.labels,
        label_priors=source.label_priors,
        abstain_threshold=source.abstain_threshold,
        group_thresholds=source.group_thresholds,
        golden=[GoldenQuery(query=query, probabilities=row) for query, row in zip(golden, answers, strict=True)],
        quality=source.quality,
        lineage=source.lineage,
        files={},
    )


def _known_manifest(folder: Path, reference: Reference) -> Manifest:
    """The manifest of a bundle that gets another target, which must be of the same checkpoint."""
    manifest = Bundle(folder).manifest
    names = [label.name for label in manifest.labels]
    if names != reference.labels:
        raise CompileError(f"the bundle's labels are {names}, the checkpoint's {reference.labels}: make another bundle")
    expected = np.array([golden.probabilities for golden in manifest.golden], np.float32)
    difference = largest_difference(expected, reference.probabilities([golden.query for golden in manifest.golden]))
    if difference > SAME_CHECKPOINT:
        raise CompileError(
            f"the bundle {manifest.name}@{manifest.version} is of another checkpoint (its golden answers differ by "
            f"{difference:.4f}): make another bundle"
        )
    return manifest
