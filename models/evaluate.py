"""query-intent evaluate: a model and labelled queries → every score with its interval.

    query-intent evaluate --bundle models/bundles/query-intent --target cpu --table prepared/intent.csv
    query-intent evaluate --checkpoint models/checkpoints/query-intent --table prepared/intent.csv --pictures pictures

Runs on any CPU: about 1 ms a query for MiniLM, so 10,000 test rows take well under a minute.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from models.evaluation.judged import Judged
    from models.evaluation.labelled import Labelled
    from models.evaluation.subject import Subject

File = click.Path(path_type=Path, exists=True, dir_okay=False)
Folder = click.Path(path_type=Path, file_okay=False)


def _thresholds(context: click.Context, parameter: click.Parameter, value: str) -> list[float]:
    """ "0.5,0.9" as numbers from 0 to 1."""
    try:
        thresholds = [float(part) for part in value.split(",")]
    except ValueError:
        raise click.BadParameter(f"{value!r}: numbers with commas between") from None
    if not all(0 <= threshold <= 1 for threshold in thresholds):
        raise click.BadParameter(f"{value!r}: a threshold is from 0 to 1")
    return thresholds


@click.command("evaluate", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--checkpoint", type=Folder, help="Judge a checkpoint, in float32.")
@click.option("--bundle", type=Folder, help="Judge a bundle's compiled target, or its fallback.")
@click.option(
    "--target", type=click.Choice(["cpu", "torch", "fallback"]), help="Of the bundle. [default: the best it has]"
)
@click.option("--table", type=File, required=True, help="csv or jsonl of texts and labels.")
@click.option("--split", "splits", multiple=True, metavar="NAME", help="May be repeated; all takes every row.")
@click.option("--text-column", default="text", show_default=True)
@click.option("--label-column", default="label", show_default=True)
@click.option("--sample", type=click.IntRange(1), help="Judge so many rows, drawn by --seed, for a quick look.")
@click.option("--home-group", help="The group that false redirects leave. [default: the first label's]")
@click.option(
    "--thresholds", callback=_thresholds, default="0.5,0.8,0.9,0.95", show_default=True, help="Of false redirects."
)
@click.option(
    "--keep-recall",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.85,
    show_default=True,
    help="Also count them at the thresholds that keep this recall of each other group.",
)
@click.option("--out-of-scope-label", metavar="LABEL", help="Its rows belong to no intent; the model may lack it.")
@click.option(
    "--perturb",
    type=click.Choice(["prefix", "typo"]),
    multiple=True,
    help="Ask the rows again half typed or mistyped, drawn by --seed. May be repeated.",
)
@click.option("--priors", metavar="SHARES", help="Answer as for this mix: a JSON object, its file, uniform, estimated.")
@click.option("--estimate-priors", type=File, help="Unlabelled queries of the deployment, as often as they came.")
@click.option("--estimate-column", metavar="NAME", help="Of the queries in that file. [default: query or text]")
@click.option("--seed", default=17, show_default=True, help="Of samples, perturbations and bootstrap.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="JSON file. [default: standard output]")
@click.option("--pictures", type=Folder, help="Write confusion.png, reliability.png and coverage.png there.")
def command(
    checkpoint: Path | None,
    bundle: Path | None,
    target: str | None,
    table: Path,
    splits: tuple[str, ...],
    text_column: str,
    label_column: str,
    sample: int | None,
    estimate_priors: Path | None,
    estimate_column: str | None,
    out: Path | None,
    pictures: Path | None,
    **options: Any,
) -> None:
    """Judge a checkpoint or a compiled target on labelled queries.

    \b
    query-intent evaluate --bundle models/bundles/query-intent --target cpu --table prepared/intent.csv
    query-intent evaluate --checkpoint my-checkpoint --table mine.jsonl --split validation --pictures pictures
    query-intent evaluate --bundle B --table mine.csv --estimate-priors searches.txt --priors estimated

    The table needs a text and a label column; of a table with a column `split` the rows in `test` are judged unless
    --split says otherwise, and columns `source` and `style` make segments. A summary goes to standard error, the JSON
    document to --out or standard output. Intervals are of 95 %: Wilson's for shares, a bootstrap for macro means.

    A model's confidence is for the mix of labels it was trained on. --priors gives what is known of the deployment's
    mix, '{"product_search": 0.8, "media": 0.1, "help": 0.04, "other": 0.06}' by group or by label, and every score is
    then of the corrected confidence. --estimate-priors finds the mix from unlabelled queries; its labels in the
    document, `jq .estimated_priors.labels`, are what the service's setting PRIORS takes. Either way calibration is
    reported for three mixes: the table's, a shop's (4 % help) and one with every group alike.

    Perturbed queries are made as in training's augmentation: prefixes keep 60 % of the characters or more.
    """
    from app.errors import StartError
    from models.evaluation.document import write_document
    from models.evaluation.summary import show

    _prepare_places(out, pictures)
    try:
        subject = _subject(checkpoint, bundle, target)
        report, judged = _evaluate(
            subject,
            table,
            estimate_priors,
            estimate_column,
            {"splits": splits, "text_column": text_column, "label_column": label_column, "sample": sample},
            options,
        )
    except (ValueError, StartError) as error:
        raise click.ClickException(str(error)) from error
    if pictures is not None:
        from models.evaluation.pictures import draw

        abstain = report["scores"]["abstain"]
        is_sure = judged.is_sure(abstain["threshold"], abstain["group_thresholds"])
        report["pictures"] = [str(path) for path in draw(judged, is_sure, pictures)]
    write_document(report, out)
    show(report)


def _subject(checkpoint: Path | None, bundle: Path | None, target: str | None) -> Subject:
    from models.evaluation.subject import bundle_subject, checkpoint_subject

    if (checkpoint is None) == (bundle is None):
        raise click.UsageError("give one of --checkpoint and --bundle")
    if checkpoint is not None:
        if target is not None:
            raise click.UsageError("--target is a bundle's; a checkpoint is judged in float32")
        return checkpoint_subject(checkpoint)
    assert bundle is not None
    return bundle_subject(bundle, target)


def _evaluate(
    subject: Any,
    table: Path,
    traffic: Path | None,
    column: str | None,
    reading: dict[str, Any],
    options: dict[str, Any],
) -> tuple[dict[str, Any], Judged]:
    """Everything that can be refused is, before the model is loaded."""
    from models.data.table import digest
    from models.evaluation.labelled import read_labelled
    from models.evaluation.priors import training_priors
    from models.evaluation.report import Request, evaluate
    from models.evaluation.traffic import read_traffic

    seed, home = options["seed"], options.pop("home_group") or subject.groups[0]
    if home not in subject.groups:
        raise click.UsageError(f"--home-group {home}: the model's groups are {', '.join(subject.groups)}")
    labelled = read_labelled(
        table,
        subject.names,
        max_tokens=subject.max_tokens,
        out_of_scope_label=options["out_of_scope_label"],
        seed=seed,
        **reading,
    )
    unlabelled = None if traffic is None else read_traffic(traffic, column=column, max_tokens=subject.max_tokens)
    request = Request(home=home, traffic=unlabelled, **options)
    found, judged = evaluate(subject, labelled, training_priors(subject.label_priors, subject.labels), request)
    report = {
        "model": subject.name,
        "notes": list(subject.notes) + _differing_groups(subject, labelled),
        "table": {"path": str(table), "sha256": digest(table), **reading, "rows": len(labelled)},
        "seed": seed,
    }
    return report | found, judged


def _differing_groups(subject: Subject, labelled: Labelled) -> list[str]:
    """A table may have groups of its own; the model's are what pages switch on."""
    of = {label.name: label.group for label in subject.labels}
    pairs = {(row.label, row.group) for row in labelled.rows if row.group and row.group != of[row.label]}
    return [f"{label} is in group {group} in the table, in {of[label]} in the model" for label, group in sorted(pairs)]


def _prepare_places(out: Path | None, pictures: Path | None) -> None:
    """What can't be written later is said now."""
    if out is not None and not out.absolute().parent.is_dir():
        raise click.ClickException(f"{out}: no folder {out.absolute().parent}")
    if pictures is not None:
        if importlib.util.find_spec("matplotlib") is None:
            raise click.ClickException("--pictures needs matplotlib: make install, or pip install -e '.[train]'")
        try:
            pictures.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise click.ClickException(f"{pictures}: can't be made: {error.strerror}") from None


if __name__ == "__main__":
    command()
