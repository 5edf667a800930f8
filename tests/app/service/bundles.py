"""The tiny bundle as the null target serves it: buckets of the test's choice, and a word on which the model fails."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from app.bundle import EMBEDDINGS, TARGET_MANIFEST, Bundle, write_embeddings, write_manifest
from tests.tiny_bundle import MAX_TOKENS, TARGET, VOCABULARY, make_tiny_bundle

# The embedding of this word is no number, so the null model fails on a query that has it, and on its row with it.
POISON = "cable"
# As many tokens as there may be, [CLS] and [SEP] included: it fills a row of 32.
LONG_QUERY = "a " * (MAX_TOKENS - 2)
LABELS = 9
HELP_THRESHOLD = 0.9
GROUPS = 4


def make_null_bundle(path: Path, *, buckets: tuple[int, ...] = (16, 32)) -> Path:
    make_tiny_bundle(path)
    bundle = Bundle(path)
    tables = {name: table.astype(np.float32) for name, table in load_file(path / EMBEDDINGS).items()}
    tables["word"][VOCABULARY.index(POISON)] = np.nan
    write_embeddings(path, **tables)
    target = bundle.target(TARGET).model_copy(update={"buckets": list(buckets)})
    (path / TARGET / TARGET_MANIFEST).write_text(target.model_dump_json())
    # Cold enough that some answers are sure and others aren't.
    changes = {"temperature": 0.4, "group_thresholds": {"help": HELP_THRESHOLD}}
    write_manifest(path, bundle.manifest.model_copy(update=changes))
    return path
