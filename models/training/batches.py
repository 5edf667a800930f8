"""Batches of queries of like length: on a CPU every padded token costs what a real one costs."""

from __future__ import annotations

import random
from collections.abc import Sequence

# Batches whose queries are sorted together. Larger pads less, smaller mixes more; 50 × 64 queries pad under 5 %.
POOL = 50


def bucketed(lengths: Sequence[int], batch_size: int, chance: random.Random) -> list[list[int]]:
    """Indices into ``lengths`` as batches: shuffled, sorted by length within pools of ``POOL`` batches, shuffled again.

    Every index occurs once; only the last batch of a pool may be short. The same ``chance`` gives the same batches,
    which is what lets a resumed run continue inside an epoch.
    """
    indices = list(range(len(lengths)))
    chance.shuffle(indices)
    batches: list[list[int]] = []
    for start in range(0, len(indices), POOL * batch_size):
        pool = sorted(indices[start : start + POOL * batch_size], key=lambda index: lengths[index])
        batches += [pool[at : at + batch_size] for at in range(0, len(pool), batch_size)]
    chance.shuffle(batches)
    return batches


def shared_out(batches: Sequence[list[int]], rank: int, processes: int) -> list[list[int]]:
    """This process's batches: every process gets as many, so that none waits for a gradient that never comes."""
    whole = len(batches) - len(batches) % processes
    return list(batches[rank:whole:processes])
