"""From labelled examples to a table: conflicts out, splits that don't leak, caps that keep groups and styles level."""

from __future__ import annotations

import hashlib
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from models.data.sources.example import Example
from models.data.table import Row

# Share of the training families that goes to validation.
VALIDATION_SHARE = 0.1
# How much a source gives compared with the others, 1 by default: real and varied texts more, what is derived less.
WEIGHTS = {
    "books": 4.0, "books_with_author": 0.7, "titles": 2.0, "webshop_goals": 2.0,
    "nq": 3.0, "nq_keywords": 1.5, "wellformedness": 3.0, "wellformedness_keywords": 1.5, "clinc_other": 3.0,
    "own": 1.3,
}  # fmt: skip
DERIVED_WEIGHT = 0.4  # a keyword row behind a common carrier


def weight_of(source: str) -> float:
    return DERIVED_WEIGHT if source.endswith("_carried") else WEIGHTS.get(source, 1.0)


def drop_conflicts(examples: Iterable[Example]) -> tuple[list[Example], list[str]]:
    """One example a text, and the texts dropped because two sources label them differently.

    Of repeats a held-out one stays: a text that is tested on must not be trained on.
    """
    by_text: dict[str, Example] = {}
    conflicts: set[str] = set()
    for example in examples:
        known = by_text.setdefault(example.text, example)
        if known.label != example.label:
            conflicts.add(example.text)
        elif example.held_out > known.held_out:  # "test" > "development" > ""
            by_text[example.text] = example
    kept = [example for text, example in by_text.items() if text not in conflicts]
    return kept, sorted(conflicts)


def assign_splits(examples: Sequence[Example], seed: int) -> tuple[list[tuple[Example, str]], int]:
    """Give each example its split; also the number of training examples dropped as too close to a held-out one.

    Held-out examples keep their place; of the rest, a family goes to training or validation as a whole, by a hash of
    its name, so that more data never moves a family.
    """
    tested = {example.family for example in examples if example.held_out}
    assigned: list[tuple[Example, str]] = []
    dropped = 0
    for example in examples:
        if example.held_out:
            assigned.append((example, example.held_out))
        elif example.family in tested:
            dropped += 1
        else:
            draw = hashlib.blake2b(f"{seed}:{example.family}".encode(), digest_size=8).digest()
            share = int.from_bytes(draw, "big") / 2**64
            assigned.append((example, "validation" if share < VALIDATION_SHARE else "train"))
    return assigned, dropped


def cap(
    assigned: Sequence[tuple[Example, str]],
    caps: Mapping[str, int],
    groups: Mapping[str, str],
    seed: int,
) -> list[Row]:
    """At most ``caps[label]`` training rows a label, half of them keywords; held-out rows are capped by source only.

    Validation gets the same proportions, a ninth of the sizes. Within a label and style the sources share by weight.
    """
    pools: defaultdict[tuple[str, str, str], defaultdict[str, list[Example]]] = defaultdict(lambda: defaultdict(list))
    for example, split in assigned:
        pools[split, example.label, example.style][example.source].append(example)
    rows: list[Row] = []
    for (split, label, style), sources in sorted(pools.items()):
        chance = random.Random(f"{seed}:{split}:{label}:{style}")
        limit = _limit(split, caps[label])
        for source, count in share_out({source: len(found) for source, found in sources.items()}, limit).items():
            picked = chance.sample(sources[source], count)
            rows += [Row(found.text, label, groups[label], source, split, style) for found in picked]
    order = {split: place for place, split in enumerate(("train", "validation", "development", "test"))}
    return sorted(rows, key=lambda row: (order[row.split], row.label, row.source, row.text))


def _limit(split: str, label_cap: int) -> int:
    half = label_cap // 2
    if split == "train":
        return half
    if split == "validation":
        return max(1, round(half * VALIDATION_SHARE / (1 - VALIDATION_SHARE)))
    return 3000  # held out: all there is, but no film list that drowns the rest


def share_out(available: Mapping[str, int], limit: int) -> dict[str, int]:
    """Divide ``limit`` among the sources by their weights, none giving more than it has.

    >>> share_out({"a": 10, "b": 2, "c": 10}, 12)
    {'b': 2, 'a': 5, 'c': 5}
    """
    shares: dict[str, int] = {}
    left, weight_left = limit, sum(map(weight_of, available))
    # Those that run out first go first, so that what they leave is shared by the rest.
    for source, count in sorted(available.items(), key=lambda item: (item[1] / weight_of(item[0]), item[0])):
        weight = weight_of(source)
        shares[source] = min(count, int(left * weight / weight_left + 1e-9))
        left, weight_left = left - shares[source], weight_left - weight
    return shares
