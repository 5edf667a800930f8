"""query-intent prepare: raw data sets → one labelled table.

    query-intent prepare --data FOLDER --out prepared/intent.csv     (10 seconds on one core)
    query-intent prepare --probe prepared/intent.csv                 (fails when style alone tells the groups apart)
    query-intent prepare --data FOLDER --set clinc150                (a published set with its own splits)

Needs no torch. The same folder and seed give the same bytes.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import click
from click.core import ParameterSource

from models.data.inputs import InputError, verify_inputs
from models.data.mix import assign_splits, cap, drop_conflicts
from models.data.outside import outside_examples
from models.data.probe import LIMIT, probe
from models.data.sources import SOURCES
from models.data.sources.example import Example, clean
from models.data.standard import STANDARD_SETS, build_standard
from models.data.style import cut_carrier, family_of, style_of
from models.data.table import SPLITS, Row, TableError, read_table, write_table
from models.data.wording import CARRIERS, phrases
from models.labels import GROUPS, LABELS, OUTSIDE_LABEL

# Rows a label in training. "other" is the most varied group; the six labels of help share a group, so each gets less.
CAPS = {"product_search": 7000, "media": 7000, "other": 9000}
HELP_CAP = 1500
# How many of our own queries are drawn before repeats fall away.
_OWN_QUERIES = {"product_search": 6000, "media": 3000, "other": 5000}
_OWN_HELP_QUERIES = 1600
# The share of training keywords that also appear behind one of the common carriers.
_CARRIED_SHARE = 0.35


def raw_examples(data: Path, seed: int) -> Iterator[Example]:
    """Every example of every source, each source drawn with its own seed so that one can't disturb another."""
    for name, source in SOURCES.items():
        yield from source.read(data / name, random.Random(f"{seed}:{name}"))


def own_examples(examples: list[Example], seed: int) -> Iterator[Example]:
    """Queries in our own words, with titles, names and products taken from training sources."""
    chance = random.Random(f"{seed}:own")
    fillers = {
        "title": [found.text for found in examples if found.source == "books" and len(found.text.split()) < 7],
        "author": _authors(examples),
        "artist": sorted({found.family for found in examples if found.source == "snips_slots"}),
        "product": [found.text for found in examples if found.source == "titles"],
    }
    for label in LABELS:
        count = _OWN_QUERIES.get(label.name, _OWN_HELP_QUERIES)
        for phrase in phrases(label.name, count, fillers, chance):
            text = clean(phrase.text)
            yield Example(text, phrase.label, "own", style_of(text), family_of(cut_carrier(text)))


def _authors(examples: list[Example]) -> list[str]:
    titles = {found.family: found.text for found in examples if found.source == "books"}
    both = (found for found in examples if found.source == "books_with_author")
    return sorted({found.text.removeprefix(titles.get(found.family, "")).strip() for found in both})


def carried_examples(examples: list[Example], seed: int) -> Iterator[Example]:
    """Keywords of every group behind one and the same set of beginnings, so that a beginning tells nothing."""
    chance = random.Random(f"{seed}:carried")
    for found in examples:
        if not found.held_out and found.style == "keyword" and chance.random() < _CARRIED_SHARE:
            text = clean(f"{chance.choice(CARRIERS)} {found.text}")
            yield found._replace(text=text, source=f"{found.source}_carried", style="sentence")


def build(data: Path, seed: int) -> tuple[list[Row], dict[str, int]]:
    """The table, and what was dropped on the way (reason → rows)."""
    examples = [found for found in raw_examples(data, seed) if found.text]
    examples += own_examples(examples, seed)
    examples += carried_examples(examples, seed)
    kept, conflicts = drop_conflicts(examples)
    assigned, too_close = assign_splits(kept, seed)
    caps = {label.name: CAPS.get(label.name, HELP_CAP) for label in LABELS}
    rows = cap(assigned, caps, {label.name: label.group for label in LABELS}, seed)
    known = {found.text for found, _ in assigned}
    outside = {found.text: found for found in outside_examples({word for text in known for word in text.split()}, seed)}
    over_the_caps = len(assigned) - len(rows)
    rows += [
        Row(text, OUTSIDE_LABEL, OUTSIDE_LABEL, found.source, "train", found.style)
        for text, found in outside.items()
        if text not in known
    ]
    dropped = {
        "repeats": len(examples) - len(kept) - len(conflicts),
        "texts with two labels": len(conflicts),
        "training rows too close to a held-out one": too_close,
        "over the caps": over_the_caps,
    }
    return rows, dropped


def summary(rows: list[Row]) -> str:
    """Rows a label and split, keywords/sentences, then the sources of each group."""
    counts = Counter((row.label, row.split, row.style) for row in rows)
    lines = [f"{'label':<16}" + "".join(f"{split:>16}" for split in SPLITS) + "   (keyword/sentence)"]
    for label in LABELS:
        cells = (f"{counts[label.name, split, 'keyword']}/{counts[label.name, split, 'sentence']}" for split in SPLITS)
        lines.append(f"{label.name:<16}" + "".join(f"{cell:>16}" for cell in cells))
    sources: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for row in rows:
        sources[row.split, row.group][row.source] += 1
    lines.append("")
    for split in SPLITS:
        for group in (*GROUPS, OUTSIDE_LABEL):
            found = ", ".join(f"{source} {count}" for source, count in sources[split, group].most_common())
            lines += [f"{split:<12}{group:<15} {found}"] if found else []
    return "\n".join(lines)


def _counts(rows: list[Row]) -> str:
    counts = Counter(row.split for row in rows)
    return f"{len({row.label for row in rows})} labels, " + ", ".join(f"{split} {n}" for split, n in counts.items())


def check_style(rows: list[Row]) -> float:
    """The probe's score on the training rows; raises ``click.ClickException`` over the limit."""
    training = [row for row in rows if row.split in ("", "train") and row.label != OUTSIDE_LABEL]
    groups = {row.group for row in training}
    if len(groups - {""}) < 2:
        raise click.ClickException("the probe needs a group column with at least two groups")
    score = probe(training)
    if score > LIMIT:
        raise click.ClickException(
            f"style alone sorts the groups at {score:.3f}, over {LIMIT:.2f}: level the styles first"
        )
    return score


@click.command("prepare", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="QUERY_INTENT_DATA",
    help="Folder of raw data sets with its SHA256SUMS.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The table to write, .csv or .jsonl.  [default: prepared/intent.csv, prepared/SET.csv]",
)
@click.option(
    "--set",
    "standard",
    type=click.Choice(sorted(STANDARD_SETS)),
    help="Write this published set with its own splits instead of the shop's mix.",
)
@click.option("--seed", default=17, show_default=True, help="Decides the splits, the samples and our own queries.")
@click.option(
    "--probe",
    "table",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Only run the style-only probe on this table; writes nothing.",
)
def command(data: Path | None, out: Path | None, standard: str | None, seed: int, table: Path | None) -> None:
    """Turn the raw data sets into one table: text, label, group, source, split, style.

    Texts are normalised as serving normalises them. Families of one template or one entity stay on one side of the
    split, whole sources are held out for `development` (look at it while you work) and `test` (score on it), texts with
    two labels are dropped, and groups and styles are levelled. A table on which style alone tells the groups apart is
    refused; `--probe TABLE` repeats that check on any table.
    """
    if standard and click.get_current_context().get_parameter_source("seed") is not ParameterSource.DEFAULT:
        raise click.UsageError("--seed decides nothing in a published set")
    try:
        if table is not None:
            click.echo(f"style-only probe: {check_style(read_table(table)):.3f} (limit {LIMIT:.2f})")
            return
        if data is None:
            raise click.UsageError("say where the raw data sets are: --data FOLDER or QUERY_INTENT_DATA")
        out = out or Path("prepared") / f"{standard or 'intent'}.csv"
        sets = {standard: STANDARD_SETS[standard]} if standard else SOURCES
        identity = verify_inputs(data, [f"{name}/{file}" for name, each in sets.items() for file in each.files])
        rows, dropped = build_standard(data, standard) if standard else build(data, seed)
        counted = _counts(rows) if standard else f"{summary(rows)}\n\nstyle-only probe: {check_style(rows):.3f}"
        digest = write_table(rows, out)
    except (InputError, TableError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(counted + ("" if standard else f" (limit {LIMIT:.2f})"))
    click.echo("dropped: " + ", ".join(f"{count} {reason}" for reason, count in dropped.items()))
    click.echo(f"raw data sha256 {identity}\n{out}: {len(rows)} rows, sha256 {digest}")


if __name__ == "__main__":
    command()
