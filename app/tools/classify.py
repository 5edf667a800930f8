"""``query-intent classify``: answers on the command line, by the same engine as the service and without a server."""

from __future__ import annotations

import asyncio
import csv
import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TextIO

import click
import orjson

from app.bundle import Bundle
from app.classifier import Prediction
from app.cpu_budget import cpu_budget
from app.engine import Engine
from app.ranking import Ranked
from app.settings import SHIPPED_BUNDLE

CHUNK = 512  # queries classified at a time: enough to fill rows on every core, little enough to show progress
# Nobody waits for one of these answers, so rows may be as long as they are efficient.
PATIENT_S = 600.0
FORMATS = (".txt", ".csv", ".tsv", ".jsonl")


@click.command("classify", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("queries", nargs=-1)
@click.option(
    "--file", "file", metavar="FILE", help="Read queries from a .txt, .csv, .tsv or .jsonl file; - is stdin, as txt."
)
@click.option("--column", metavar="NAME", help="The column (csv, tsv) or member (jsonl) that holds the query.")
@click.option(
    "--format", "form", type=click.Choice(["table", "jsonl"]), help="Default: a table for a terminal, else jsonl."
)
@click.option(
    "--top-k", type=click.IntRange(1, 100), default=3, show_default=True, help="Intents listed for each query."
)
@click.option(
    "--overrides",
    type=click.Path(path_type=Path),
    help="Try a table of overrides: lines that are wrong are named, and answers from it marked.",
)
@click.option(
    "--bundle", type=click.Path(path_type=Path), default=SHIPPED_BUNDLE, help="Bundle; default: the shipped one."
)
@click.option("--target", type=click.Choice(["auto", "cpu", "torch"]), default="auto", show_default=True)
def command(
    queries: tuple[str, ...],
    file: str | None,
    column: str | None,
    form: str | None,
    top_k: int,
    overrides: Path | None,
    bundle: Path,
    target: str,
) -> None:
    """Classify QUERIES, a file, or standard input, one query a line.

    \b
    query-intent classify "where is my parcel" "usb c cable"
    query-intent classify --file queries.csv --column text > answers.jsonl
    cut -f2 searches.tsv | query-intent classify --format jsonl
    """
    with ExitStack() as stack:
        if queries and file:
            raise click.UsageError("give queries or --file, not both")
        if queries:
            source: Iterator[str] = iter(queries)
        elif file in (None, "-"):
            if sys.stdin.isatty() and file is None:
                raise click.UsageError("nothing to classify: give queries, --file, or pipe some in")
            source = (line.rstrip("\n") for line in sys.stdin)
        else:
            assert file is not None
            source = read_queries(Path(file), column, stack)
        asyncio.run(_classify(list(source), form or _default_form(), top_k, overrides, bundle, target))


def read_queries(path: Path, column: str | None, stack: ExitStack) -> Iterator[str]:
    """The queries in a file, by its suffix. Raises ``click.UsageError`` naming the file, line or column at fault."""
    if path.suffix not in FORMATS:
        raise click.UsageError(f"{path}: don't know {path.suffix or 'a file without suffix'}; use {', '.join(FORMATS)}")
    try:
        opened = stack.enter_context(path.open(encoding="utf-8", newline=""))
    except OSError as error:
        raise click.UsageError(f"{path}: {error.strerror}") from None
    if path.suffix == ".txt":
        return (line.rstrip("\r\n") for line in opened)
    if path.suffix == ".jsonl":
        return _read_jsonl(opened, path, column or "query")
    return _read_table(opened, path, column)


def _read_table(opened: TextIO, path: Path, column: str | None) -> Iterator[str]:
    reader = csv.DictReader(opened, delimiter="\t" if path.suffix == ".tsv" else ",")
    columns = list(reader.fieldnames or [])
    column = column or next((name for name in ("query", "text") if name in columns), None)
    if column not in columns:
        wanted = f"no column {column!r}" if column else "which column holds the query? Give --column"
        raise click.UsageError(f"{path}: {wanted}; it has {', '.join(columns) or 'none'}")
    return (row[column] or "" for row in reader)


def _read_jsonl(opened: TextIO, path: Path, member: str) -> Iterator[str]:
    for number, line in enumerate(opened, 1):
        try:
            yield str(json.loads(line)[member])
        except (ValueError, KeyError, TypeError) as error:
            raise click.UsageError(f"{path}, line {number}: no JSON object with {member!r} ({error})") from None


async def _classify(queries: list[str], form: str, top_k: int, overrides: Path | None, path: Path, target: str) -> None:
    engine = Engine(
        Bundle(path),
        target,
        replicas=cpu_budget(),
        slo_s=PATIENT_S,
        queue_tokens=CHUNK * 512,
        overrides=overrides,
    )
    await engine.open()
    try:
        # The bar goes to standard error, so that the answers can be piped.
        with click.progressbar(
            length=len(queries), label="classifying", file=sys.stderr, hidden=len(queries) <= CHUNK
        ) as bar:
            for start in range(0, len(queries), CHUNK):
                chunk = queries[start : start + CHUNK]
                for query, answer in zip(chunk, await _answers(engine, chunk), strict=True):
                    _write(query, answer, form, top_k)
                bar.update(len(chunk))
    finally:
        engine.close()


async def _answers(engine: Engine, chunk: list[str]) -> list[Prediction | None]:
    """One answer a query, in order; ``None`` for a blank one, which costs the others nothing."""
    filled = [query for query in chunk if engine.classifier.can_classify(query)]
    answers = iter(await engine.classifier.classify_list(filled, timeout_s=PATIENT_S) if filled else ())
    return [next(answers) if engine.classifier.can_classify(query) else None for query in chunk]


def _write(query: str, answer: Prediction | None, form: str, top_k: int) -> None:
    ranked = answer.ranked if answer is not None else "blank"
    if answer is None or not isinstance(ranked, Ranked):
        document: dict[str, Any] = {"query": query, "error": str(ranked)}
        line = f"{_shorten(query):<44}  {ranked}"
    else:
        intents = ranked.intents[:top_k]
        (intent, confidence), (group, _) = intents[0], ranked.groups[0]
        document = {
            "query": query,
            "intent": intent,
            "confidence": confidence,
            "group": group,
            "intents": [{"intent": name, "confidence": each} for name, each in intents],
            "source": answer.source,
        }
        rest = "  ".join(f"{name} {each:.3f}" for name, each in intents[1:])
        if answer.source != "model":
            rest = f"from {answer.source}"
        line = f"{_shorten(query):<44}  {group:<15} {intent:<16} {confidence:.3f}   {rest}"
    click.echo(orjson.dumps(document).decode() if form == "jsonl" else line.rstrip())


def _shorten(query: str) -> str:
    return query if len(query) <= 44 else f"{query[:43]}…"


def _default_form() -> str:
    return "table" if sys.stdout.isatty() else "jsonl"
