"""query-intent compare: two models on the same queries → what changes, and go or no-go.

    query-intent compare models/bundles/2024-05 models/bundles/2024-06 --labelled prepared/intent.csv
    query-intent compare models/bundles/query-intent:torch models/bundles/query-intent:cpu --queries searches.txt

Runs on any CPU: about 1 ms a query and model for MiniLM.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from models.evaluation.labelled import Labelled
    from models.evaluation.rule import Rule
    from models.evaluation.subject import Subject

# Neither 1 nor 2, which say that nothing could be compared.
NO_GO = 3

File = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command("compare", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option("--labelled", "table", type=File, help="csv or jsonl of texts and labels.")
@click.option("--split", "splits", multiple=True, metavar="NAME", help="May be repeated; all takes every row.")
@click.option("--text-column", default="text", show_default=True)
@click.option("--label-column", default="label", show_default=True)
@click.option("--out-of-scope-label", metavar="LABEL", help="Its rows belong to no intent and are left out.")
@click.option("--sample", type=click.IntRange(1), help="Compare on so many labelled rows, drawn by --seed.")
@click.option("--queries", type=File, help="Queries as they came: txt, csv, tsv or jsonl, repeated ones repeated.")
@click.option("--queries-column", metavar="NAME", help="Of the queries in that file. [default: query or text]")
@click.option(
    "--max-drop", type=click.FloatRange(0, 1), default=0.003, show_default=True, help="Accuracy that may be lost."
)
@click.option(
    "--max-changed",
    type=click.FloatRange(0, 1),
    default=0.02,
    show_default=True,
    help="Share of the traffic whose group may change.",
)
@click.option("--seed", default=17, show_default=True, help="Of the sample and the bootstrap.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="JSON file. [default: standard output]")
def command(
    a: str,
    b: str,
    table: Path | None,
    splits: tuple[str, ...],
    text_column: str,
    label_column: str,
    out_of_scope_label: str | None,
    sample: int | None,
    queries: Path | None,
    queries_column: str | None,
    max_drop: float,
    max_changed: float,
    seed: int,
    out: Path | None,
) -> None:
    """Compare B with A, the model whose place it would take.

    \b
    query-intent compare bundles/2024-05 bundles/2024-06 --labelled mine.csv --queries searches.txt
    query-intent compare models/bundles/query-intent:torch models/bundles/query-intent:cpu --labelled mine.csv

    A and B are each a bundle (its best target), BUNDLE:TARGET, or a checkpoint folder. --labelled says how often each
    is right: paired differences with a bootstrap interval and McNemar's exact test, by label, source, style and length
    (its rows in the split `test`, where there is one). --queries says what changes for shoppers: the share of traffic
    whose intent or group changes, and the queries behind it; without it the labelled texts stand for the traffic.

    \b
    The rule. Exit code 3, no-go, when
      the 95 % interval of B - A accuracy on --labelled reaches under minus --max-drop, or
      more than --max-changed of the traffic changes its group.
    0 is go; 1 and 2 mean that nothing was compared.
    """
    from app.errors import StartError
    from models.evaluation.changes import shared_labels
    from models.evaluation.differences import show
    from models.evaluation.document import write_document
    from models.evaluation.labelled import read_labelled
    from models.evaluation.rule import Rule
    from models.evaluation.subject import find_subject
    from models.evaluation.traffic import read_traffic

    if table is None and queries is None:
        raise click.UsageError("give --labelled, --queries, or both")
    if out is not None and not out.absolute().parent.is_dir():
        raise click.ClickException(f"{out}: no folder {out.absolute().parent}")
    try:
        subjects = (find_subject(a), find_subject(b))
        max_tokens = max(subject.max_tokens for subject in subjects)
        labelled = None
        if table is not None:
            labelled = read_labelled(
                table,
                shared_labels(*subjects),
                splits=splits,
                text_column=text_column,
                label_column=label_column,
                max_tokens=max_tokens,
                out_of_scope_label=out_of_scope_label,
                sample=sample,
                seed=seed,
            )
        traffic = None if queries is None else read_traffic(queries, column=queries_column, max_tokens=max_tokens)
        report = compare(*subjects, labelled, traffic, Rule(max_drop, max_changed), seed)
    except (ValueError, StartError) as error:
        raise click.ClickException(str(error)) from error
    show(report)
    write_document(
        {**report, "labelled_table": str(table or ""), "queries_file": str(queries or ""), "seed": seed}, out
    )
    if report["verdict"] != "go":
        sys.exit(NO_GO)


def compare(
    a: Subject,
    b: Subject,
    labelled: Labelled | None,
    traffic: Mapping[str, int] | None,
    rule: Rule,
    seed: int,
) -> dict[str, Any]:
    """The whole report; at least one of ``labelled``, whose labels both models have, and ``traffic`` is given."""
    from models.evaluation.asking import ask
    from models.evaluation.changes import (
        Answers,
        differing_labels,
        judged,
        labelled_changes,
        shared_labels,
        traffic_changes,
    )

    texts = [] if labelled is None else labelled.texts
    traffic = dict.fromkeys(texts, 1) if traffic is None else traffic
    # Each text once, however many of the two files have it.
    asked = list(dict.fromkeys([*texts, *traffic]))
    place = {text: at for at, text in enumerate(asked)}
    found = {name: ask(subject.load(), asked, f"asking {name}") for name, subject in (("A", a), ("B", b))}
    report: dict[str, Any] = {"a": a.name, "b": b.name, "notes": [*a.notes, *b.notes, *differing_labels(a, b)]}
    if labelled is not None:
        rows = [place[text] for text in texts]
        shared = shared_labels(a, b)
        report["labelled"] = labelled_changes(
            labelled,
            judged(a, found["A"][rows], labelled, shared),
            judged(b, found["B"][rows], labelled, shared),
            seed=seed,
        )
    rows = [place[text] for text in traffic]
    report["traffic"] = traffic_changes(traffic, Answers(a, found["A"][rows]), Answers(b, found["B"][rows]))
    reasons = rule.reasons(report)
    return report | {"rule": str(rule), "reasons": reasons, "verdict": "no-go" if reasons else "go"}


if __name__ == "__main__":
    command()
