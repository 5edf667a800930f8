"""``query-intent classify``: answers on the command line, by the same engine as the service and without a server."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

import click
import orjson

from app.bundle import Bundle
from app.classifier import Prediction
from app.cpu_budget import cpu_budget
from app.engine import Engine
from app.ranking import Ranked
from app.settings import SHIPPED_BUNDLE
from app.tools.query_files import FORMATS, Format, QueryFileError, format_of, read_file, read_stream

CHUNK = 512  # queries classified at a time: enough to fill rows on every core, little enough to show progress
# Nobody waits for one of these answers, so rows may be as long as they are efficient.
PATIENT_S = 600.0
COUNTABLE_BYTES = 4 << 20  # a file up to this is read once before to count it: well under a second


@click.command("classify", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("queries", nargs=-1)
@click.option("--file", "file", metavar="FILE", help="Read queries from a file; - is standard input.")
@click.option(
    "--input-format", type=click.Choice(FORMATS), help="Of what is read; default: the file's suffix, txt where none is."
)
@click.option(
    "--column",
    metavar="NAME",
    help="The column (csv, tsv) or member (jsonl) that holds the query; default: query, else text.",
)
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
    input_format: Format | None,
    column: str | None,
    form: str | None,
    top_k: int,
    overrides: Path | None,
    bundle: Path,
    target: str,
) -> None:
    """Classify QUERIES, a file, or standard input: one query a line, or csv, tsv or jsonl.

    \b
    query-intent classify "where is my parcel" "usb c cable"
    query-intent classify --file queries.csv --column text > answers.jsonl
    cut -f2 searches.tsv | query-intent classify --format jsonl
    zcat log.jsonl.gz | query-intent classify --input-format jsonl --column q
    """
    try:
        source, count = find_queries(queries, file, input_format, column)
        asyncio.run(_classify(source, count, form or _default_form(), top_k, overrides, bundle, target))
    except QueryFileError as error:
        raise click.UsageError(str(error)) from None


def find_queries(
    queries: tuple[str, ...], file: str | None, input_format: Format | None, column: str | None
) -> tuple[Iterator[str], int | None]:
    """The queries, and how many they are where that is known without holding or waiting for them all."""
    if queries and file:
        raise click.UsageError("give queries or --file, not both")
    if queries and (input_format or column):
        raise click.UsageError("--input-format and --column are for a file or standard input, not for queries given")
    if queries:
        return iter(queries), len(queries)
    if file in (None, "-"):
        if sys.stdin.isatty() and file is None:
            raise click.UsageError("nothing to classify: give queries, --file, or pipe some in")
        _refuse_column_of_lines("standard input", input_format or "txt", column)
        rows = read_stream(sys.stdin.buffer, "standard input", input_format=input_format or "txt", column=column)
        return (row.text for row in rows), None
    assert file is not None
    path = Path(file)
    _refuse_column_of_lines(file, input_format or format_of(path), column)
    rows = read_file(path, input_format=input_format, column=column)
    # Counting reads it all, so whatever is wrong with a small file is said before its first answer. A pipe has one go.
    if not path.is_file() or path.stat().st_size > COUNTABLE_BYTES:
        return (row.text for row in rows), None
    count = sum(1 for _ in rows)
    return (row.text for row in read_file(path, input_format=input_format, column=column)), count


def _refuse_column_of_lines(name: str, input_format: Format, column: str | None) -> None:
    if column and input_format == "txt":
        raise click.UsageError(f"{name} is read as lines of text, without --column: give --input-format as well")


def _chunks(source: Iterator[str]) -> Iterator[list[str]]:
    while chunk := list(islice(source, CHUNK)):
        yield chunk


async def _classify(
    source: Iterator[str], count: int | None, form: str, top_k: int, overrides: Path | None, path: Path, target: str
) -> None:
    chunks = _chunks(source)
    first = next(chunks, [])  # before the engine: a wrong column needn't wait for one
    if not first:
        return
    if len(first) < CHUNK:
        count = len(first)
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
            chain([first], chunks),
            length=None if count is None else -(-count // CHUNK),
            label="classifying",
            file=sys.stderr,
            hidden=count is not None and count <= CHUNK,
        ) as bar:
            for chunk in bar:
                for query, answer in zip(chunk, await _answers(engine, chunk), strict=True):
                    _write(query, answer, form, top_k)
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
