"""query-intent compile: a checkpoint → a bundle and one of its targets, or its fallback.

    query-intent compile --checkpoint models/checkpoints/query-intent --bundle models/bundles/query-intent \\
        --target cpu --calibration prepared/intent.csv --holdout prepared/intent.csv

Runs on any CPU: under a minute for a target of MiniLM, some minutes for its fallback. What is made is compared with the
float32 checkpoint on the held-out queries, and nothing is written when they agree too little.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from models.labels import LABELS

FALLBACK = "fallback"
TARGETS = ("cpu", "torch", FALLBACK)
# int8 is the same model in other numbers; a fallback is another one, and `query-intent evaluate` says how good.
MIN_AGREEMENT = {"cpu": 0.99, "torch": 0.99, FALLBACK: 0.0}
GOLDEN = Path(__file__).with_name("golden.txt")

File = click.Path(path_type=Path, exists=True, dir_okay=False)
Folder = click.Path(path_type=Path, file_okay=False)


def _buckets(context: click.Context, parameter: click.Parameter, value: str) -> list[int]:
    """ "8,12,16" as rising numbers of tokens."""
    try:
        buckets = [int(part) for part in value.split(",")]
    except ValueError:
        raise click.BadParameter(f"{value!r}: whole numbers with commas between") from None
    if buckets != sorted(set(buckets)) or buckets[0] < 3:
        raise click.BadParameter(f"{value!r}: buckets must rise and begin at 3 or more")
    return buckets


@click.command("compile", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--checkpoint", type=Folder, required=True, help="Folder of a Hugging Face sequence classifier.")
@click.option("--bundle", type=Folder, required=True, help="Bundle to make, or to add the target to.")
@click.option("--target", type=click.Choice(TARGETS), default="cpu", show_default=True)
@click.option("--name", help="Of a new bundle. [default: the checkpoint's folder]")
@click.option("--version", help="Of a new bundle. [default: 1]")
@click.option("--labels", type=File, help="JSON list of names, or of {name, definition, group}, in the logits' order.")
@click.option(
    "--calibration",
    type=File,
    required=True,
    help="Queries (txt, csv, tsv, jsonl) to learn from: int8 ranges, or the fallback.",
)
@click.option("--holdout", type=File, required=True, help="Queries (txt, csv, tsv, jsonl) to compare with float32 on.")
@click.option("--column", metavar="NAME", help="Of the queries in csv, tsv and jsonl. [default: query or text]")
@click.option(
    "--golden",
    type=File,
    help="Queries that every replica must answer right to start, written into the bundle.  [default: golden.txt for "
    "the shop's labels, else the surest held-out query of each label]",
)
@click.option(
    "--buckets", callback=_buckets, default="8,12,16,24,32,48", show_default=True, help="Row lengths in tokens."
)
@click.option(
    "--min-agreement", type=click.FloatRange(0, 1), help="Share of labels. [default: 0.99, of the fallback 0]"
)
@click.option("--seed", default=17, show_default=True, help="Of the calibration rows, or the fallback's phrases.")
def command(
    checkpoint: Path,
    bundle: Path,
    target: str,
    name: str | None,
    version: str | None,
    labels: Path | None,
    calibration: Path,
    holdout: Path,
    column: str | None,
    golden: Path | None,
    buckets: list[int],
    min_agreement: float | None,
    seed: int,
) -> None:
    """Compile a checkpoint for one target, or teach a fallback its answers.

    BERT, DistilBERT, RoBERTa and ELECTRA classifiers can be compiled, with or without the training.json that
    `query-intent train` leaves. Text files hold a query a line, csv, tsv and jsonl files have it in --column;
    where such a table has a column `split`, calibration takes its rows in `train` and the comparison the others.

    The bundle is made when it isn't there; otherwise the target is added to it or replaced in it.

    `--target fallback` adds the small linear student that answers when the model can't in time (the service's setting
    FALLBACK). It learns what the checkpoint says of the --calibration queries, which need no labels, and of its own
    vocabulary; its confidence is fitted on labels, so --holdout must be a table with columns `text` and `label` (where
    it has splits, its rows in `development`, else in `validation`). `query-intent evaluate --target fallback` judges
    it.
    """
    from app.errors import StartError
    from models.compiling.compiler import compile_bundle
    from models.compiling.order import Order, Queries
    from models.compiling.queries import read_labelled, read_queries
    from models.compiling.source import read_source
    from models.compiling.summary import Summary

    summary = Summary()
    try:
        with summary.step(f"reading {checkpoint}"):
            source = read_source(checkpoint, labels=labels)
            read = partial(read_queries, column=column, max_tokens=source.max_tokens)
            if golden is None and [label.name for label in source.labels] == [label.name for label in LABELS]:
                golden = GOLDEN
            queries = Queries(
                read(calibration, split="train"), read(holdout, split="other"), read(golden) if golden else ()
            )
            if target == FALLBACK:
                names = [label.name for label in source.labels]
                labelled = read_labelled(holdout, names, column=column, max_tokens=source.max_tokens)
                queries = queries._replace(labelled=labelled)
        order = Order(
            target=target,
            buckets=buckets,
            min_agreement=MIN_AGREEMENT[target] if min_agreement is None else min_agreement,
            seed=seed,
            name=name or checkpoint.resolve().name.lower(),
            version=version or "1",
        )
        compile_bundle(source, order, queries, bundle, summary)
    except (ValueError, StartError) as error:
        raise click.ClickException(str(error)) from error


if __name__ == "__main__":
    command()
