"""query-intent train: a table and an encoder → a checkpoint.

    query-intent train --table prepared/intent.csv --out models/checkpoints/query-intent --epochs 3

MiniLM on the shop's 31,600 training rows takes about five minutes of processor time an epoch with AVX-512 bf16. Killed
and started again, the same command continues where it was and reaches the same score. On a machine that others use
too, set OMP_WAIT_POLICY=PASSIVE: threads that spin while the other is kept waiting took 2.0 s of processor time a step
under load instead of 0.55. ``accelerate launch -m models.train …`` spreads a run over several devices.
"""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from models.checkpoint import CheckpointError, Lineage, TrainingRecord, load_record
from models.data.table import TableError, digest, read_table
from models.labels import OUTSIDE_LABEL
from models.training.base import DEFAULT_BASE, find_base, load_base
from models.training.confidence import REDIRECT_COST
from models.training.recipe import Recipe
from models.training.shown import shown
from models.training.task import Task, make_task

if TYPE_CHECKING:
    from accelerate import Accelerator  # type: ignore[import-untyped]

    from models.training.distillation import Teaching
    from models.training.finishing import Home


def lineage_of(base: str, table: Path, seed: int, teaching: Teaching | None) -> Lineage:
    """Where a checkpoint comes from, as far as the machine knows."""
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    packages = ("torch", "transformers", "tokenizers", "accelerate", "numpy")
    return Lineage(
        base=base,
        commit=commit.stdout.strip() if commit.returncode == 0 else "",
        data_digest=digest(table),
        seed=seed,
        versions={"python": ".".join(map(str, sys.version_info[:3]))} | {name: version(name) for name in packages},
        command=" ".join(["query-intent train", *sys.argv[1 + (sys.argv[1:2] == ["train"]) :]]),
        teacher_digest=teaching.teacher_digest if teaching else "",
        kept_layers=teaching.keep_layers if teaching else (),
    )


def make_accelerator(precision: str, threads: int) -> Accelerator:
    """bf16 autocast where the hardware multiplies bf16; ``auto`` leaves other CPUs at float32, their faster one."""
    import torch
    from accelerate import Accelerator

    if threads:
        torch.set_num_threads(threads)
    if precision == "auto":
        cpu = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
        fast = torch.cuda.is_bf16_supported() if torch.cuda.is_available() else cpu
        precision = "bf16" if fast else "no"
    return Accelerator(mixed_precision=precision)


def train(
    task: Task,
    base: Path,
    recipe: Recipe,
    lineage: Lineage,
    out: Path,
    state: Path,
    accelerator: Accelerator,
    teaching: Teaching | None = None,
    home: Home | None = None,
) -> TrainingRecord | None:
    """Fit, calibrate, write; the record on the main process, None on the others.

    With ``teaching`` the base is the teacher, and what is fitted is a student of some of its layers.
    """
    from accelerate.utils import set_seed  # type: ignore[import-untyped]

    from models.training.distillation import make_student
    from models.training.finishing import finish
    from models.training.fitting import Fit

    set_seed(recipe.seed)
    model, tokenizer = load_base(base, task.names)
    distillation = make_student(model, base, teaching, accelerator) if teaching else None
    identity: dict[str, Any] = {"data": lineage.data_digest, "rows": task.digest, "base": str(base)}
    identity["labels"] = task.names
    identity["distillation"] = dataclasses.asdict(teaching) if teaching else None
    unsure = identity["unsure"] = task.unsure(home.group if home else None)
    fit = Fit(accelerator, model, tokenizer, recipe, state, identity, distillation=distillation, unsure=unsure)
    pairs = {name: (task.splits[name].texts, task.splits[name].targets) for name in ("train", "validation")}
    with shown(recipe, accelerator.is_main_process) as report:
        best = fit.run(pairs["train"], pairs["validation"], report)
    if not accelerator.is_main_process:
        return None
    record = finish(best, tokenizer, task, recipe, lineage, out, home)
    shutil.rmtree(state)
    return record


def _describe(record: TrainingRecord) -> str:
    lines = [f"temperature {record.temperature}, abstains under {record.abstain_threshold}"]
    if record.group_thresholds:
        lines.append("  of " + ", ".join(f"{name} {each}" for name, each in record.group_thresholds.items()))
    for name, quality in record.quality.items():
        groups = ", ".join(
            f"{group} {scores['recall']:.3f} (n={scores['n']})" for group, scores in quality["groups"].items()
        )
        lines.append(
            f"{name}: n={quality['n']}, accuracy {quality['accuracy']:.3f}, macro-F1 {quality['macro_f1']:.3f}, "
            f"group macro recall {quality['group_macro_recall']:.3f}, ECE {quality['ece']:.3f}"
        )
        if len(quality["groups"]) <= 12:
            lines.append(f"  recall of {groups}")
    return "\n".join(lines)


def _given(context: click.Context) -> set[str]:
    """The options that the caller gave, whatever their value: one that would do nothing is an error."""
    return {name for name in context.params if context.get_parameter_source(name) is not ParameterSource.DEFAULT}


def _layer_list(_: click.Context, __: click.Parameter, value: str | None) -> tuple[int, ...]:
    try:
        return tuple(int(layer) for layer in value.split(",")) if value else ()
    except ValueError:
        raise click.BadParameter(f"{value!r} is no list of layers such as 0,2,5") from None


@click.command("train", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--table", type=click.Path(path_type=Path, dir_okay=False), required=True, help="csv or jsonl of rows.")
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="Checkpoint folder to write."
)
@click.option("--base", default=DEFAULT_BASE, show_default=True, help="Encoder folder, or the pip package's MiniLM.")
@click.option(
    "--teacher",
    type=click.Path(path_type=Path, file_okay=False),
    help="Checkpoint to make a student of; replaces --base.",
)
@click.option("--student-layers", type=click.IntRange(1), help="The student's layers, spread over the teacher's.")
@click.option("--keep-layers", callback=_layer_list, help="Which of the teacher's instead, from 0: 0,2,5.")
@click.option(
    "--teacher-share",
    type=click.FloatRange(0, 1),
    default=0.5,
    show_default=True,
    help="Of the loss; labels have the rest.",
)
@click.option(
    "--teacher-temperature",
    type=click.FloatRange(0, min_open=True),
    default=2.0,
    show_default=True,
    help="Of both answers when they are compared; higher shows more of what the teacher nearly said.",
)
@click.option(
    "--match-hidden", type=click.FloatRange(0), default=0.0, show_default=True, help="Weight of agreeing [CLS] states."
)
@click.option("--text-column", default="text", show_default=True, metavar="NAME", help="Of the table.")
@click.option("--label-column", default="label", show_default=True, metavar="NAME", help="Of the table.")
@click.option(
    "--validation-share",
    type=click.FloatRange(0.01, 0.5),
    default=0.1,
    show_default=True,
    help="Cut out of a table without a split column.",
)
@click.option(
    "--out-of-scope-label",
    metavar="LABEL",
    help="Its rows belong to no label: the model learns to be unsure of them.  [default: outside, where a row has it]",
)
@click.option(
    "--outside-weight",
    type=click.FloatRange(0),
    default=0.5,
    show_default=True,
    help="Of such a row in the loss; a row with a label has 1.",
)
@click.option(
    "--home-group",
    metavar="GROUP",
    help="Its page is the default: the other groups get thresholds, and rows outside its answer.",
)
@click.option(
    "--redirect-cost",
    type=click.FloatRange(0),
    default=REDIRECT_COST,
    show_default=True,
    help="What wrongly taking 1 % of the queries of --home-group costs, in per cent of another group's left at home.",
)
@click.option("--epochs", type=click.IntRange(1), default=8, show_default=True, help="At most; see --patience.")
@click.option("--patience", type=click.IntRange(1), default=2, show_default=True, help="Epochs without a better score.")
@click.option("--batch-size", type=click.IntRange(1), default=64, show_default=True, help="Queries a step and process.")
@click.option(
    "--learning-rate",
    type=click.FloatRange(0, min_open=True),
    default=2e-4,
    show_default=True,
    help="Of the top layer at its highest, after the warm-up.",
)
@click.option(
    "--layer-decay",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.85,
    show_default=True,
    help="How much slower each layer learns than the one above.",
)
@click.option(
    "--label-smoothing",
    type=click.FloatRange(0, 0.5),
    default=0.1,
    show_default=True,
    help="Helps accuracy where labels are many; blurs which answers are sure. 0 where a threshold decides.",
)
@click.option("--balance", type=click.FloatRange(0, 1), default=0.5, show_default=True, help="0 ignores rare labels.")
@click.option(
    "--augment", type=click.FloatRange(0, 1), default=0.3, show_default=True, help="Share with typo or prefix."
)
@click.option("--train-embeddings", is_flag=True, help="Train the word table too: slower, seldom better.")
@click.option(
    "--max-tokens",
    type=click.IntRange(3, 512),
    default=32,
    show_default=True,
    help="Longer queries are cut, as in serving.",
)
@click.option("--seed", default=17, show_default=True, help="Of the head, the batches, the typos and the drawn split.")
@click.option(
    "--precision",
    type=click.Choice(["auto", "bf16", "no"]),
    default="auto",
    show_default=True,
    help="auto: bf16 where the hardware multiplies it.",
)
@click.option("--threads", type=click.IntRange(0), default=0, help="CPU threads; 0 takes torch's choice.")
@click.option(
    "--state",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where to save on the way. [default: OUT.unfinished]",
)
@click.option("--restart", is_flag=True, help="Forget an unfinished run instead of continuing it.")
def command(
    table: Path,
    out: Path,
    base: str,
    teacher: Path | None,
    student_layers: int | None,
    keep_layers: tuple[int, ...],
    teacher_share: float,
    teacher_temperature: float,
    match_hidden: float,
    text_column: str,
    label_column: str,
    validation_share: float,
    out_of_scope_label: str | None,
    home_group: str | None,
    redirect_cost: float,
    threads: int,
    precision: str,
    state: Path | None,
    restart: bool,
    **recipe_options: Any,
) -> None:
    """Fine-tune an encoder on labelled queries.

    TABLE needs a text and a label column; with a column `split` (train, validation, and any of development, test) the
    splits are taken from it, else a validation split is drawn. Training stops when validation macro-F1 no longer rises.
    Then confidence is fitted, on `development` where the table has it (sources that training doesn't see), and every
    split is scored.

    The checkpoint folder holds a Hugging Face sequence classifier in float16, its tokenizer, and training.json; give it
    to `query-intent compile`, `query-intent evaluate`, or as --base to the next training.

    With --teacher CHECKPOINT and --student-layers N the result is a smaller student of it, taught by its answers too.
    """
    given = _given(click.get_current_context())
    if "redirect_cost" in given and home_group is None:
        raise click.UsageError("--redirect-cost is of thresholds that --home-group asks for")
    if {"teacher_share", "teacher_temperature", "match_hidden"} & given and not teacher:
        raise click.UsageError("--teacher-share, --teacher-temperature and --match-hidden need a --teacher")
    if bool(teacher) != bool(student_layers or keep_layers) or (student_layers and keep_layers):
        raise click.UsageError("a student takes --teacher and one of --student-layers and --keep-layers")
    if teacher and base != DEFAULT_BASE:
        raise click.UsageError("a student starts from its --teacher: leave --base out")
    if teacher and out.resolve() == teacher.resolve():
        raise click.UsageError("--out would replace the teacher")
    try:
        rows = read_table(
            table, text_column=text_column, label_column=label_column, max_tokens=recipe_options["max_tokens"]
        )
        if out_of_scope_label is None and any(row.label == OUTSIDE_LABEL for row in rows):
            out_of_scope_label = OUTSIDE_LABEL
        if "outside_weight" in given and out_of_scope_label is None:
            raise click.UsageError("--outside-weight is of rows outside every label, and the table has none")
        task = make_task(
            rows,
            validation_share=validation_share,
            seed=recipe_options["seed"],
            out_of_scope_label=out_of_scope_label,
        )
        teaching = None
        if teacher:
            from models.training.distillation import plan

            loss = {"share": teacher_share, "temperature": teacher_temperature, "match_hidden": match_hidden}
            teaching = plan(teacher, task.names, student_layers, keep_layers, **loss)
        base_folder = teacher or find_base(base)
        from models.training.finishing import Home
        from models.training.fitting import StateError

        home = None if home_group is None else Home(home_group, redirect_cost)
        if home is not None:
            home.check(task)
        recipe = Recipe(**recipe_options)
        state = state or out.with_name(f"{out.name}.unfinished")
        if state.absolute() in (out.absolute(), *out.absolute().parents):
            raise click.ClickException(f"--state {state} holds --out {out}: it is removed when the run is done")
        accelerator = make_accelerator(precision, threads)
        if restart and accelerator.is_main_process:
            shutil.rmtree(state, ignore_errors=True)
        accelerator.wait_for_everyone()
        lineage = lineage_of(str(teacher or base), table, recipe.seed, teaching)
        if teacher and load_record(teacher).lineage.data_digest != lineage.data_digest:
            click.echo(f"{teacher} learned from another table: if it saw this one's tests, scores flatter", err=True)
        try:
            record = train(task, base_folder, recipe, lineage, out, state, accelerator, teaching, home)
        except (StateError, ArithmeticError) as error:
            raise click.ClickException(str(error)) from error
    except (TableError, CheckpointError) as error:
        raise click.ClickException(str(error)) from error
    if record is not None:
        click.echo(_describe(record) + f"\n{out}: written")


if __name__ == "__main__":
    command()
