"""What a run learns: the table's rows as splits of texts and label indices, checked before anything slow begins."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Sequence

from models.checkpoint import LabelRecord
from models.data.table import Row, TableError
from models.labels import LABELS

OUTSIDE = -1  # the target of a text that has none of the labels
# Of the answer to such a text. More than half, since the temperature that is fitted afterwards moves confidence from
# single labels to groups of many.
HOME_SHARE = 0.6


@dataclasses.dataclass(frozen=True)
class Split:
    texts: list[str]
    targets: list[int]  # indices into the task's labels; in training also OUTSIDE
    sources: list[str]

    def __len__(self) -> int:
        return len(self.texts)


@dataclasses.dataclass(frozen=True)
class Task:
    labels: tuple[LabelRecord, ...]
    splits: dict[str, Split]  # "train" and "validation" always, others as the table has them

    def unsure(self, home: str | None = None) -> list[float]:
        """[labels] The answer of who knows nothing: every group alike, since pages switch on it, and in it each label.

        Even over labels it would be help's, which has six of a shop's nine. With a ``home`` group, whose page a shop
        shows anyway, it is rather that one.
        """
        sizes = Counter(self.groups.values())
        shares = dict.fromkeys(sizes, 1 / len(sizes))
        if home is not None:
            shares = dict.fromkeys(sizes, (1 - HOME_SHARE) / (len(sizes) - 1)) | {home: HOME_SHARE}
        return [shares[label.group] / sizes[label.group] for label in self.labels]

    @property
    def digest(self) -> str:
        """Of the rows that a run sees: the same table read otherwise is another task."""
        rows = [[name, split.texts, split.targets] for name, split in sorted(self.splits.items())]
        return hashlib.blake2b(json.dumps(rows).encode(), digest_size=16).hexdigest()

    @property
    def decisive(self) -> str:
        """The split that confidence is fitted on: sources held out for decisions where there are such."""
        return "development" if "development" in self.splits else "validation"

    @property
    def names(self) -> list[str]:
        return [label.name for label in self.labels]

    @property
    def groups(self) -> dict[str, str]:
        return {label.name: label.group for label in self.labels}


def make_task(
    rows: Sequence[Row], *, validation_share: float, seed: int, out_of_scope_label: str | None = None
) -> Task:
    """Splits and labels of a table; one without a split column loses ``validation_share`` of each label to validation.

    Rows with ``out_of_scope_label`` belong to no label: training gets them as ``OUTSIDE``, other splits drop them,
    since no answer to them is right.

    Raises ``TableError`` for one label only, a label that training lacks but another split has, a validation split that
    is missing or empty, and a label with two groups.
    """
    only = {row.label for row in rows} - {out_of_scope_label}
    if not only:
        raise TableError(f"every row has the out-of-scope label {out_of_scope_label!r}: nothing to tell apart")
    if len(only) == 1:
        raise TableError(f"only one label, {only.pop()!r}: nothing to tell apart")
    if any(row.split for row in rows):
        splits = _by_split(rows)
    else:
        outside = [row for row in rows if row.label == out_of_scope_label]
        splits = _drawn([row for row in rows if row.label != out_of_scope_label], validation_share, seed)
        splits["train"] += outside
    for name in splits.keys() - {"train"}:
        splits[name] = [row for row in splits[name] if row.label != out_of_scope_label]
    for name in ("train", "validation"):
        if not splits[name]:
            raise TableError(f"no rows in the split {name!r}; the table has {_counts(splits)}")
    trained = [row for row in splits["train"] if row.label != out_of_scope_label]
    if out_of_scope_label is not None and len(trained) == len(splits["train"]):
        raise TableError(f"no training row has the out-of-scope label {out_of_scope_label!r}")
    if not trained:
        raise TableError(f"no training row has a label but {out_of_scope_label!r}")
    labels = _labels(trained)
    index = {label.name: place for place, label in enumerate(labels)}
    if out_of_scope_label is not None:
        index[out_of_scope_label] = OUTSIDE
    for name, found in splits.items():
        unknown = Counter(row.label for row in found if row.label not in index)
        if unknown:
            examples = [row.text for row in found if row.label not in index][:3]
            raise TableError(f"{name} has labels that train lacks: {dict(unknown)}, for example {examples}")
    return Task(
        labels,
        {
            name: Split([row.text for row in found], [index[row.label] for row in found], [row.source for row in found])
            for name, found in splits.items()
            if found
        },
    )


def _by_split(rows: Sequence[Row]) -> dict[str, list[Row]]:
    without = [row.text for row in rows if not row.split]
    if without:
        raise TableError(f"{len(without)} rows have no split while others do, for example {without[:3]}")
    splits: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        splits[row.split].append(row)
    return splits


def _drawn(rows: Sequence[Row], share: float, seed: int) -> dict[str, list[Row]]:
    """The same share of each label, chosen by a hash of the text: new rows never move old ones."""
    by_label: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_label[row.label].append(row)
    splits: dict[str, list[Row]] = {"train": [], "validation": []}
    for _, found in sorted(by_label.items()):
        ordered = sorted(found, key=lambda row: hashlib.blake2b(f"{seed}:{row.text}".encode()).digest())
        count = round(len(ordered) * share)
        splits["validation"] += ordered[:count]
        splits["train"] += ordered[count:]
    return splits


def _labels(rows: Sequence[Row]) -> tuple[LabelRecord, ...]:
    """The shop's labels in their own order when these are they, else labels by name, each its own group by default."""
    groups: dict[str, str] = {}
    for row in rows:
        known = groups.setdefault(row.label, row.group)
        if known != row.group:
            raise TableError(
                f"label {row.label!r} is in two groups, {known!r} and {row.group!r}, for example {row.text!r}"
            )
    if len(groups) < 2:
        raise TableError(f"only one label in train, {next(iter(groups))!r}: nothing to tell apart")
    if set(groups) == {label.name for label in LABELS}:
        return tuple(LabelRecord(**label._asdict()) for label in LABELS)
    return tuple(LabelRecord(name=name, group=groups[name] or name) for name in sorted(groups))


def _counts(splits: dict[str, list[Row]]) -> str:
    return ", ".join(f"{name} {len(found)}" for name, found in splits.items() if found) or "none"
