"""What the engine alone computes: ``python -m benchmarks.bare_engine``, about 10 seconds on two cores.

As many threads as the service has replicas, each with its own copy of the model as a replica has it, run packed rows in
a tight loop; the rows are full, of real queries, and built before the clock starts. No service gets past the best
bucket's queries a second, so it is what a peak of goodput is compared with. Prints one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.backends.base import Model
from app.backends.cpu import CpuBackend
from app.bundle import TOKENIZER, Bundle
from app.cpu_budget import cpu_budget
from app.packing import RowBuffers, max_segments
from app.settings import SHIPPED_BUNDLE
from app.text import normalise
from app.tokenization import Tokenizer
from benchmarks.queries import write_queries

ROWS = 64  # of each bucket and thread, run in turn
Ids = NDArray[np.int64]


def fill_rows(queries: Sequence[Ids], tokens: int, count: int) -> list[list[Ids]]:
    """``count`` rows of up to ``tokens``, each with the first queries that still fit: fuller than any queue's.

    Fewer where the queries run out; one that is longer than a row is left out.
    """
    waiting = [ids for ids in queries if len(ids) <= tokens]
    rows: list[list[Ids]] = []
    while waiting and len(rows) < count:
        row: list[Ids] = []
        rest: list[Ids] = []
        free = tokens
        for place, ids in enumerate(waiting):
            if free < 3 or len(row) == max_segments(tokens):  # the shortest query is [CLS] word [SEP]
                rest += waiting[place:]
                break
            if len(ids) <= free:
                row.append(ids)
                free -= len(ids)
            else:
                rest.append(ids)
        rows.append(row)
        waiting = rest
    return rows


def run_bucket(models: Sequence[Model], rows: Sequence[tuple[int, RowBuffers]], seconds: float) -> float:
    """Queries a second of all ``models`` at once; ``rows`` are pairs of a row and the number of its queries."""
    rates = [0.0] * len(models)
    barrier = threading.Barrier(len(models))

    def loop(place: int, model: Model) -> None:
        own = rows[place :: len(models)]
        barrier.wait()
        started = time.perf_counter()
        done = 0
        while (elapsed := time.perf_counter() - started) < seconds:
            for queries, row in own:
                model.forward(row.hidden, row.mask, row.pool)
                done += queries
        rates[place] = done / elapsed

    threads = [threading.Thread(target=loop, args=each) for each in enumerate(models)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(rates)


def measure(bundle: Bundle, queries: Sequence[str], *, seconds: float, cores: int) -> dict[str, Any]:
    target = bundle.target("cpu")
    embeddings = bundle.embeddings()
    max_tokens = bundle.manifest.max_tokens
    tokenizer = Tokenizer(bundle.path / TOKENIZER, max_tokens=max_tokens, vocabulary=len(embeddings.word))
    ids = [tokenizer.encode(normalise(query, max_tokens=max_tokens)).ids for query in queries]
    models = [CpuBackend(bundle.path / "cpu", target).load(core) for core in range(cores)]
    by_bucket: dict[str, Any] = {}
    for tokens in target.buckets:
        filled = fill_rows(ids, tokens, ROWS * cores)
        rows = []
        for row in filled:
            buffers = RowBuffers(tokens, embeddings, pooling=bundle.manifest.pooling)
            buffers.fill(row)
            rows.append((len(row), buffers))
        run_bucket(models, rows, min(0.2, seconds))
        by_bucket[str(tokens)] = {
            "queries_per_s": round(run_bucket(models, rows, seconds), 1),
            "row_fill": round(sum(len(each) for row in filled for each in row) / (tokens * len(filled)), 3),
        }
    best = max(by_bucket, key=lambda bucket: by_bucket[bucket]["queries_per_s"])
    return {
        "queries_per_s": by_bucket[best]["queries_per_s"],
        "bucket": int(best),
        "cores": cores,
        "by_bucket": by_bucket,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", type=Path, default=SHIPPED_BUNDLE)
    parser.add_argument("--seconds", type=float, default=1.5, help="of each bucket")
    parser.add_argument("--cores", type=int, default=cpu_budget(), help="threads, each with a copy of the model")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "queries.txt"
        if not write_queries(path):
            parser.error("set QUERY_INTENT_DATA: real queries differ in length, and length is what a row holds")
        queries = path.read_text(encoding="utf-8").splitlines()
    print(json.dumps(measure(Bundle(args.bundle), queries, seconds=args.seconds, cores=args.cores)))


if __name__ == "__main__":
    main()
