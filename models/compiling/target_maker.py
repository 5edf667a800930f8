"""Making one target: calibrate if it must be, build, compare with float32, and find how far its answers may move."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from app.backends.base import Model
from app.bundle import GoldenQuery, TargetManifest
from app.packing import RowBuffers
from models.compiling.agreement import Agreement, agreement, demand, largest_difference
from models.compiling.calibration import calibration_rows, choose
from models.compiling.order import CompileError, Order, Queries
from models.compiling.predictor import Predictor
from models.compiling.reference import Reference
from models.compiling.source import Source
from models.compiling.summary import Summary
from models.compiling.targets import make_target

# A golden query that moves further says nothing any more about whether a replica computes what it should.
WIDEST_TOLERANCE = 0.25


class TargetMaker:
    """Writes artefacts into a folder and returns what its ``target.json`` says; raises when they aren't good enough."""

    def __init__(self, source: Source, order: Order, reference: Reference, summary: Summary) -> None:
        self._source, self._order, self._reference, self._summary = source, order, reference, summary
        self._target = make_target(order, summary)

    def make(
        self, directory: Path, queries: Queries, golden: Sequence[GoldenQuery]
    ) -> tuple[TargetManifest, Agreement]:
        """Fill ``directory``, which is emptied first.

        Raises ``CalibrationError`` when it calibrates and lacks a label; ``CompileError`` when it can't be built, too
        few labels agree or a golden query gets another answer; ``BackendError`` when the engine doesn't load it.
        """
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        rows = self._calibrate(queries.calibration) if self._target.CALIBRATES else []
        source = f" from {len(rows)} calibration rows" if rows else ""
        with self._summary.step(f"building target {self._order.target}{source}"):
            built = self._target.build(self._source.converted.encoder, rows, directory)
        target = TargetManifest(
            target=self._order.target,
            engine=dict(built.engine),
            precision=built.precision,
            buckets=self._order.buckets,
            one_query_a_row=self._order.one_query_a_row,
            tolerance=WIDEST_TOLERANCE,
            options={**built.options, **({"seed": self._order.seed} if self._target.CALIBRATES else {})},
        )
        model = self._target.backend(directory, target).load(0)
        try:
            found = self._compare(model, queries.holdout)
            moved = self._golden_difference(model, golden)
        finally:
            model.close()
        measured = {
            "queries": found.queries,
            "labels": found.labels,
            "largest": found.largest,
            "mean": found.mean,
            "golden_largest": moved,
        }
        return target.model_copy(update={"tolerance": self._tolerance(moved), "agreement": measured}), found

    def _calibrate(self, texts: Sequence[str]) -> list[RowBuffers]:
        with self._summary.step(f"choosing calibration queries among {len(texts)}"):
            chosen = choose(texts, self._reference.labels, self._reference.probabilities, seed=self._order.seed)
            return calibration_rows(
                self._reference.encode(chosen),
                self._reference.embeddings,
                buckets=self._order.buckets,
                pooling=self._reference.pooling,
                seed=self._order.seed,
            )

    def _compare(self, model: Model, texts: Sequence[str]) -> Agreement:
        with self._summary.step(f"comparing with float32 on {len(texts)} held-out queries"):
            predictor = self._predictor(model, self._order.buckets[-1])
            expected = self._reference.probabilities(texts)
            actual = predictor.probabilities(self._reference.encode(texts))
            found = agreement(texts, self._reference.labels, expected, actual)
        self._summary.agreement(found)
        demand(found, self._order.min_agreement)
        return found

    def _predictor(self, model: Model, tokens: int) -> Predictor:
        return self._reference.predictor(model, tokens=tokens, one_query_a_row=self._order.one_query_a_row)

    def _golden_difference(self, model: Model, golden: Sequence[GoldenQuery]) -> float:
        """Largest |Δp| of any golden query in any bucket that it fits; every label must be right."""
        moved, furthest = 0.0, ""
        for tokens in self._order.buckets:
            predictor = self._predictor(model, tokens)
            encoded = zip(golden, self._reference.encode([query.query for query in golden]), strict=True)
            fitting = [(query, ids) for query, ids in encoded if len(ids) <= tokens]
            if not fitting:
                raise CompileError(
                    f"no golden query is short enough for bucket {tokens}, so no replica could be proved"
                )
            expected = np.array([query.probabilities for query, _ in fitting], np.float32)
            actual = predictor.probabilities([ids for _, ids in fitting])
            for (query, _), wanted, given in zip(fitting, expected, actual, strict=True):
                if (want := int(wanted.argmax())) != (got := int(given.argmax())):
                    labels = self._reference.labels
                    raise CompileError(
                        f"golden query {query.query!r} in bucket {tokens}: {labels[got]} instead of {labels[want]}; "
                        "nothing written"
                    )
                if (difference := largest_difference(wanted, given)) > moved:
                    moved, furthest = difference, query.query
        self._summary.note(f"golden queries move by {moved:.5f} at most" + (f" ({furthest!r})" if furthest else ""))
        return moved

    def _tolerance(self, moved: float) -> float:
        if moved > WIDEST_TOLERANCE:
            raise CompileError(
                f"a golden query's probability moves by {moved:.3f}, more than {WIDEST_TOLERANCE}: nothing written"
            )
        wanted = max(self._target.LEAST_TOLERANCE, self._target.TOLERANCE_HEADROOM * moved)
        tolerance = min(WIDEST_TOLERANCE, wanted)
        self._summary.note(f"a replica may move them by {tolerance:.5f}")
        return tolerance
