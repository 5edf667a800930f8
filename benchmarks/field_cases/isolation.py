"""What one client must not do to the others: a query that breaks its row, and a megabyte of nothing."""

from __future__ import annotations

import math
import shutil
import tempfile
import threading
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from app.bundle import EMBEDDINGS, TOKENIZER, Bundle, write_embeddings, write_manifest
from app.settings import SHIPPED_BUNDLE
from app.tools.load.queries import make_up
from benchmarks.bad_inputs import ODD
from benchmarks.field_cases.case import FieldCase, Finding, address, brief, put_load, result_of, start_load, unless
from benchmarks.raw_http import Connection
from benchmarks.service import Service

POISON = "xylophone"  # no word of the others
POISON_EVERY = 100
POISON_RATE = 2000.0
TAIL_LIMIT = 2.0  # times the P99 without it

MEGABYTES = [case.request for case in ODD if "1 MB" in case.name]
LONG_RATE = 250.0
LONG_EVERY_S = 0.5
LONG_COSTS_MS = 5.0  # at most, of CPU

SECONDS = 30.0


def poison(scale: float) -> Finding:
    with tempfile.TemporaryDirectory() as folder:
        bundle, queries = Path(folder) / "bundle", Path(folder) / "queries.txt"
        _poison_bundle(bundle)
        clean = make_up(POISON_EVERY)
        results = []
        with Service(target="null", bundle=bundle, null_ms=1) as service:
            for lines in (clean, [*clean[1:], POISON]):
                queries.write_text("\n".join(lines))
                results.append(put_load(service, POISON_RATE, SECONDS * scale, "--queries", str(queries)))
    without, beside = results
    statuses = dict(beside["statuses"])
    failed = statuses.pop("500", 0)
    poisoned = math.ceil(beside["scheduled"] / POISON_EVERY) + 1  # each turn of the file holds one
    ratio = beside["latency_ms"]["p99"] / without["latency_ms"]["p99"]
    figures = {"without": brief(without), "beside": brief(beside), "p99_ratio": round(ratio, 2)}
    wrong = unless(failed <= poisoned, f"{failed} queries failed, {poisoned} at most are poisonous")
    wrong += unless(set(statuses) == {"200"}, f"the others were answered {statuses}")
    return Finding(figures, wrong + unless(ratio < TAIL_LIMIT, f"P99 is {ratio:.1f} times what it is without"))


def _poison_bundle(path: Path) -> None:
    """The shipped bundle with a word whose embedding is no number, so that the null model fails on its row."""
    shutil.copytree(SHIPPED_BUNDLE, path)
    tokenizer = Tokenizer.from_file(str(path / TOKENIZER))
    tables = {name: table.astype(np.float32) for name, table in load_file(path / EMBEDDINGS).items()}
    tables["word"][tokenizer.encode(POISON, add_special_tokens=False).ids[0]] = np.nan
    write_embeddings(path, **tables)
    write_manifest(path, Bundle(SHIPPED_BUNDLE).manifest)


def long_input(scale: float) -> Finding:
    seconds = SECONDS * scale
    with Service(target="null", null_ms=1) as service:
        without = put_load(service, LONG_RATE, seconds)
        load = start_load(service, "--rate", f"{LONG_RATE:g}", "--duration", f"{seconds:g}")
        stopping = threading.Event()
        sender = threading.Thread(target=_send_megabytes, args=(address(service), stopping))
        sender.start()
        beside = result_of(load)
        stopping.set()
        sender.join()
    more_ms = beside["latency_ms"]["p99"] - without["latency_ms"]["p99"]
    figures = {"without": brief(without), "beside": brief(beside), "p99_more_ms": round(more_ms, 2)}
    sentence = f"others' P99 is {more_ms:.1f} ms longer beside a megabyte every {LONG_EVERY_S:g} s"
    return Finding(figures, unless(more_ms <= LONG_COSTS_MS, sentence))


def _send_megabytes(where: tuple[str, int], stopping: threading.Event) -> None:
    number = 0
    while not stopping.wait(LONG_EVERY_S):
        with Connection(where) as connection:
            connection.request(MEGABYTES[number % len(MEGABYTES)])
        number += 1


CASES = [
    FieldCase("F9", "poison", "1 % of queries on which the model fails: they alone are 500, P99 < 2 x", 1.2, poison),
    FieldCase(
        "F25", "long-input", f"a megabyte of text costs the others' P99 at most {LONG_COSTS_MS:g} ms", 1.2, long_input
    ),
]
