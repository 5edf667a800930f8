"""query-intent compile: a checkpoint → a bundle and one of its targets, or its fallback.

    query-intent compile --checkpoint models/checkpoints/query-intent --bundle models/bundles/query-intent \\
        --target cpu --calibration prepared/intent.csv --holdout prepared/intent.csv

Runs on any CPU: under a minute for a target of MiniLM, some minutes for its fallback. What is made is compared with the
float32 checkpoint on the held-out queries, and nothing is written when they agree too little. For Inferentia it needs
AWS's SDK, and to compare a machine that has the chip.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from models.compiling.neuron.options import CHIPS, neuron_options, neuron_order
from models.labels import LABELS

FALLBACK = "fallback"
TARGETS = ("cpu", "torch", *CHIPS, FALLBACK)
CALIBRATED = ("cpu", FALLBACK)
# A chip takes one time for a row however full it is: 32 holds any query of the shipped model and answers soonest, 128
# packs about fourteen into one pass. Each bucket is a copy of the weights in the core's memory.
CHIP_BUCKETS, CPU_BUCKETS = [32, 64, 128], [8, 12, 16, 24, 32, 48]
# int8 is the same model in other numbers; a fallback is another one, and `query-intent evaluate` says how good.
MIN_AGREEMENT = {**dict.fromkeys(TARGETS, 0.99), FALLBACK: 0.0}
GOLDEN = Path(__file__).with_name("golden.txt")

File = click.Path(path_type=Path, exists=True, dir_okay=False)
Folder = click.Path(path_type=Path, file_okay=False)


def _buckets(context: click.Context, parameter: click.Parameter, value: str | None) -> list[int] | None:
    """ "8,12,16" as rising numbers of tokens."""
    if value is None:
        return None
    try:
        buckets = [int(part) for part in value.split(",")]
    except ValueError:
        raise click.BadParameter(f"{value!r}: whole numbers with commas between") from None
    if buckets != sorted(set(buckets)) or buckets[0] < 3:
        raise click.BadParameter(f"{value!r}: buckets must rise and begin at 3 or more")
    return buckets


@click.command("compile", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--checkpoint",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder of a Hugging Face sequence classifier, or a traced one (cpu_model.pt, also by the file's own name) "
    "beside its tokenizer.json and config.json.",
)
@click.option("--config", type=File, help="Of the checkpoint, where its config.json lies elsewhere.")
@click.option("--bundle", type=Folder, required=True, help="Bundle to make, or to add the target to.")
@click.option("--target", type=click.Choice(TARGETS), default="cpu", show_default=True)
@click.option("--name", help="Of a new bundle. [default: the checkpoint's folder]")
@click.option("--version", help="Of a new bundle. [default: 1]")
@click.option("--labels", type=File, help="JSON list of names, or of {name, definition, group}, in the logits' order.")
@click.option(
    "--calibration",
    type=File,
    help="Queries (txt, csv, tsv, jsonl) to learn from: int8 ranges, or the fallback. Other targets need none.",
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
    "--buckets",
    callback=_buckets,
    help="Row lengths in tokens.  [default: "
    f"{','.join(map(str, CPU_BUCKETS))}, of a chip {','.join(map(str, CHIP_BUCKETS))}]",
)
@click.option(
    "--min-agreement", type=click.FloatRange(0, 1), help="Share of labels. [default: 0.99, of the fallback 0]"
)
@click.option("--seed", default=17, show_default=True, help="Of the calibration rows, or the fallback's phrases.")
@neuron_options
def command(
    checkpoint: Path,
    config: Path | None,
    bundle: Path,
    target: str,
    name: str | None,
    version: str | None,
    labels: Path | None,
    calibration: Path | None,
    holdout: Path,
    column: str | None,
    golden: Path | None,
    buckets: list[int] | None,
    min_agreement: float | None,
    seed: int,
    **chip: Any,
) -> None:
    """Compile a checkpoint for one target, or teach a fallback its answers.

    BERT, DistilBERT, RoBERTa and ELECTRA classifiers can be compiled, with or without the training.json that
    `query-intent train` leaves. Text files hold a query a line, csv, tsv and jsonl files have it in --column;
    where such a table has a column `split`, calibration takes its rows in `train` and the comparison the others.

    The bundle is made when it isn't there; otherwise the target is added to it or replaced in it.

    `--target inf1` and `inf2` need AWS's SDK of that generation (torch-neuron or torch-neuronx, with its compiler) and
    memory: a machine of 32 GiB without a chip compiles better than a small one with it. The comparison needs the chip:
    there run the same command again with a copy of --compiler-workdir, which has what was compiled.

    `--target fallback` adds the small linear student that answers when the model can't in time (the service's setting
    FALLBACK). It learns what the checkpoint says of the --calibration queries, which need no labels, and of its own
    vocabulary; its confidence is fitted on labels, so --holdout must be a table with columns `text` and `label` (where
    it has splits, its rows in `development`, else in `validation`). `query-intent evaluate --target fallback` judges
    it.
    """
    if calibration is None and target in CALIBRATED:
        raise click.UsageError(f"--target {target} needs --calibration: queries to learn from")
    try:
        ordered = neuron_order(target, bundle, chip)
    except ValueError as error:
        raise click.UsageError(str(error)) from error

    from app.errors import QueryIntentError
    from models.compiling.compiler import compile_bundle
    from models.compiling.order import Order, Queries
    from models.compiling.queries import read_labelled, read_queries
    from models.compiling.source import read_source
    from models.compiling.summary import Summary

    summary = Summary()
    try:
        with summary.step(f"reading {checkpoint}"):
            source = read_source(checkpoint, labels=labels, config=config)
            read = partial(read_queries, column=column, max_tokens=source.max_tokens)
            if golden is None and [label.name for label in source.labels] == [label.name for label in LABELS]:
                golden = GOLDEN
            queries = Queries(
                read(calibration, split="train") if calibration else (),
                read(holdout, split="other"),
                read(golden) if golden else (),
            )
            if target == FALLBACK:
                names = [label.name for label in source.labels]
                labelled = read_labelled(holdout, names, column=column, max_tokens=source.max_tokens)
                queries = queries._replace(labelled=labelled)
        order = Order(
            target=target,
            buckets=buckets or (CHIP_BUCKETS if target in CHIPS else CPU_BUCKETS),
            min_agreement=MIN_AGREEMENT[target] if min_agreement is None else min_agreement,
            seed=seed,
            name=name or (checkpoint.parent if checkpoint.is_file() else checkpoint).resolve().name.lower(),
            version=version or "1",
            one_query_a_row=bool(chip["one_query_a_row"]),
            chip=ordered,
        )
        compile_bundle(source, order, queries, bundle, summary)
    except (ValueError, QueryIntentError) as error:
        raise click.ClickException(str(error)) from error


if __name__ == "__main__":
    command()
