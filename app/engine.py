"""The engine: a bundle's target loaded into replicas, and the path from text to ranked intents over them. No HTTP."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path

from app.backends import make_backend
from app.batching.latency import LatencyTable
from app.batching.pool import ReplicaPool
from app.batching.queue import BatchQueue
from app.batching.replica import FinishedRow, Replica
from app.bundle import TOKENIZER, Bundle, TargetManifest
from app.cache import AnswerCache
from app.classifier import Classifier, Classifies
from app.fallback import Fallback, has_fallback
from app.fallback_classifier import FallbackClassifier
from app.golden import GoldenCheck
from app.neuron_sdk import SDKS
from app.overrides import Overrides
from app.packing import RowBuffers, SpreadBuffers, max_segments
from app.priors import group_thresholds, log_shift, read_priors
from app.ranking import Ranker, Thresholds
from app.sharing import SharingClassifier
from app.tokenization import Tokenizer

logger = logging.getLogger(__name__)

# The best first, each with the package that it needs: what "auto" takes of what bundle and machine have. Inferentia is
# chosen by who gives each process its cores (app/placement.py), since a process that has none of its own takes all.
TARGETS = {"cpu": "openvino", "torch": "torch"}
# Of a lone query: the objective has to leave this many times the shortest row, or the model could hardly ever meet it.
ROWS_IN_OBJECTIVE = 2


class Engine:
    """``replicas`` copies of a bundle's ``target`` ("auto": the best there is) behind one queue, each on ``span``
    cores.

    ``slo_s`` bounds a row and ``queue_tokens`` what may wait; a row takes ``null_ms`` on the null target. ``priors``
    is a file of the deployment's label shares and ``overrides`` a table that goes before the model. With
    ``cache_bytes`` answers are kept for ``cache_ttl_s`` and identical queries in flight share a computation. With
    ``fallback`` the bundle's own, where it has one, answers single queries that the model can't in time. ``on_row``,
    ``on_cancelled`` and ``on_fault`` are the pool's, ``on_lookup`` and ``on_shared`` the ``SharingClassifier``'s.
    Raises ``BundleError`` when the bundle has no such target and ``SettingsError`` for a file that is wrong.
    """

    def __init__(
        self,
        bundle: Bundle,
        target: str,
        *,
        replicas: int,
        span: int = 1,
        slo_s: float,
        queue_tokens: int,
        null_ms: float = 0.0,
        priors: Path | None = None,
        overrides: Path | None = None,
        cache_bytes: int = 0,
        cache_ttl_s: float = math.inf,
        fallback: bool = False,
        on_row: Callable[[FinishedRow], None] = lambda _: None,
        on_cancelled: Callable[[str, int], None] = lambda _stage, _count: None,
        on_fault: Callable[[int, str], None] = lambda _replica, _fault: None,
        on_lookup: Callable[[bool], None] = lambda _is_hit: None,
        on_shared: Callable[[int], None] = lambda _count: None,
    ) -> None:
        manifest = bundle.manifest
        self.target = _choose_target(target, bundle)
        self.replicas = replicas
        self._span = span
        self._bundle = bundle
        self._slo_s = slo_s
        self._queue_tokens = queue_tokens
        self._null_ms = null_ms
        self._embeddings = bundle.embeddings()
        self.priors = read_priors(priors, training=manifest.label_priors) if priors is not None else None
        by_group = manifest.group_thresholds
        if self.priors is not None:
            groups = {label.name: label.group for label in manifest.labels}
            by_group = group_thresholds(by_group, groups, self.priors, training=manifest.label_priors)
        self.thresholds = Thresholds(manifest.abstain_threshold, by_group)
        self._tokenizer = Tokenizer(
            bundle.path / TOKENIZER, max_tokens=manifest.max_tokens, vocabulary=len(self._embeddings.word)
        )
        self.pool = ReplicaPool(
            on_row=on_row, on_cancelled=on_cancelled, on_fault=on_fault, takes_turns=self.target.target in SDKS
        )
        self.overrides = None
        if overrides is not None:
            groups = {label.name: label.group for label in manifest.labels}
            self.overrides = Overrides(overrides, groups=groups, max_tokens=manifest.max_tokens)
        override = self.overrides.get if self.overrides is not None else lambda _text: None
        self.cache = self._make_cache(cache_bytes, cache_ttl_s) if cache_bytes else None
        if self.cache is None:
            classifier: Classifies = Classifier(
                self._tokenizer, self.pool, max_tokens=manifest.max_tokens, override=override
            )
        else:
            classifier = SharingClassifier(
                self._tokenizer,
                self.pool,
                self.cache,
                max_tokens=manifest.max_tokens,
                override=override,
                on_lookup=on_lookup,
                on_shared=on_shared,
            )
        self.fallback = self._read_fallback() if fallback else None
        if self.fallback is not None:
            classifier = FallbackClassifier(classifier, self.fallback.answer, max_tokens=manifest.max_tokens)
        self.classifier = classifier
        # Seconds for which who names no time-out waits for the model; None: until the time-out that holds by default.
        self.patience_s: float | None = None

    async def open(self, *, least: int | None = None) -> None:
        """Load, prove and warm every replica, or ``least`` of them where that is given.

        Raises ``StartError`` with what kept one from it.
        """
        await self.pool.open(self.make_replicas(), self._make_queue, least=least)
        logger.info("replicas are warm", extra={"rows_ms": self.pool.queue.latency.as_milliseconds()})
        if self.fallback is not None:
            self._set_patience()

    def make_replicas(self) -> list[Replica]:
        """Not started yet: each loads, proves and times itself when it is. Raises ``BackendError``."""
        backend = make_backend(
            self._bundle.path / self.target.target,
            self.target,
            labels=len(self._bundle.manifest.labels),
            null_ms=self._null_ms,
            span=self._span,
        )
        canary = self._make_canary()
        ranker = self._make_ranker(self.priors)
        return [
            Replica(
                index,
                backend=backend,
                rows={bucket: self._make_row(bucket) for bucket in self.target.buckets},
                decode=ranker.rank,
                canary=canary,
                source=self.pool,
            )
            for index in range(self.replicas)
        ]

    def close(self) -> None:
        self.pool.close()

    def _make_cache(self, max_bytes: int, ttl_s: float) -> AnswerCache:
        manifest = self._bundle.manifest
        return AnswerCache(
            max_bytes=max_bytes,
            ttl_s=ttl_s,
            # Overrides go before the cache; whatever else an answer depends on is in here.
            model=f"{self._bundle.name} {self._bundle.digest} {self.target.target} {self.priors}",
            intents=[label.name for label in manifest.labels],
            groups=manifest.groups,
        )

    def _read_fallback(self) -> Fallback | None:
        if has_fallback(self._bundle):
            return Fallback(self._bundle, priors=self.priors)
        logger.warning(
            "the bundle has no fallback: a query that the model can't answer in time is refused",
            extra={"make_it_with": "query-intent compile --target fallback"},
        )
        return None

    def _set_patience(self) -> None:
        shortest_s = self.pool.queue.latency[self.target.buckets[0]]
        if ROWS_IN_OBJECTIVE * shortest_s <= self._slo_s:
            self.patience_s = self._slo_s
        else:  # at once and always is no answer of the model's
            logger.warning(
                "the model is too slow for the objective even when idle: the fallback answers at the time-out only",
                extra={"shortest_row_ms": round(shortest_s * 1e3, 3), "slo_ms": self._slo_s * 1e3},
            )

    def _make_canary(self) -> GoldenCheck | None:
        if self.target.target == "null":
            return None  # it answers anything
        return GoldenCheck(
            self._bundle.manifest.golden,
            tokenizer=self._tokenizer,
            ranker=self._make_ranker(None),  # what the bundle promises knows of no deployment
            max_tokens=self._bundle.manifest.max_tokens,
            tolerance=self.target.tolerance,
            one_query_a_row=self.target.one_query_a_row,
            copies=self._span,
        )

    def _make_ranker(self, priors: Mapping[str, float] | None) -> Ranker:
        manifest = self._bundle.manifest
        training = {label.name: manifest.label_priors[label.name] for label in manifest.labels}
        shift = log_shift(priors, training=training) if priors is not None else None
        return Ranker(manifest.labels, temperature=manifest.temperature, shift=shift)

    def _make_row(self, bucket: int) -> RowBuffers | SpreadBuffers:
        # The null target averages a query's tokens, so that its answer depends on all of them.
        pooling = "mean" if self.target.target == "null" else self._bundle.manifest.pooling
        if self._span > 1:
            return SpreadBuffers(bucket, self._embeddings, rows=self._span, pooling=pooling)
        return RowBuffers(bucket, self._embeddings, segments=self._segments(bucket), pooling=pooling)

    def _make_queue(self, seconds: list[dict[int, float]]) -> BatchQueue:
        """The queue, with the slowest replica's time for each bucket: a budget that holds on every one of them."""
        return BatchQueue(
            LatencyTable({bucket: max(each[bucket] for each in seconds) for bucket in self.target.buckets}),
            slo_s=self._slo_s,
            max_tokens=self._queue_tokens,
            segments=self._segments,
            singles_return=self.fallback is None,
        )

    def _segments(self, bucket: int) -> int:
        return self._span if self.target.one_query_a_row else max_segments(bucket)


def _choose_target(wanted: str, bundle: Bundle) -> TargetManifest:
    if wanted == "null":
        # What it would be compiled to: the buckets of the bundle's first target, or a plain choice.
        buckets = bundle.target(bundle.targets[0]).buckets if bundle.targets else [16, 32, 64]
        return TargetManifest(target="null", engine={}, precision="none", buckets=buckets, tolerance=1.0)
    if wanted == "auto":
        there = [target for target in TARGETS if target in bundle.targets]
        runnable = [target for target in there if find_spec(TARGETS[target]) is not None]
        wanted = next(iter(runnable or there), "cpu")
    return bundle.target(wanted)
