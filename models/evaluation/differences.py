"""What ``compare`` says to its reader on standard error; the document has all of it and more.

Queries and names go into tables as ``Text``: in a string "[/b]" would be markup, and ":gift:" an emoji.
"""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

# Changed queries shown of each kind.
_SHOWN = 10


def show(report: dict[str, Any], console: Console | None = None) -> None:
    console = console or Console(stderr=True, highlight=False, emoji=False)
    console.print(f"A: {report['a']}\nB: {report['b']}", markup=False, soft_wrap=True)
    for note in report["notes"]:
        console.print(f"note: {note}", markup=False, soft_wrap=True)
    if (labelled := report.get("labelled")) is not None:
        console.print(_labelled(labelled))
    traffic = report["traffic"]
    console.print(
        f"traffic, {traffic['queries']:,} queries ({traffic['distinct']:,} distinct): the intent of "
        f"{traffic['intent_changes'] * 100:.2f} % changes, the group of {traffic['group_changes'] * 100:.2f} %",
        soft_wrap=True,
    )
    if traffic["group_moves"]:
        moves = ", ".join(f"{move} {count:,}" for move, count in list(traffic["group_moves"].items())[:_SHOWN])
        console.print(f"from group to group: {moves}", markup=False, soft_wrap=True)
    if traffic["most_confident"]:
        # Where every query came once, the most frequent are no others than the most confident.
        if traffic["queries"] > traffic["distinct"]:
            console.print(_changed("Changed, most frequent", traffic["most_frequent"]))
        console.print(_changed("Changed, surest on both sides", traffic["most_confident"]))
    console.print(f"rule: {report['rule']}", markup=False, soft_wrap=True)
    for reason in report["reasons"]:
        console.print(f"  {reason}", markup=False, soft_wrap=True)
    console.print(report["verdict"], style="green" if report["verdict"] == "go" else "red")


def _labelled(labelled: dict[str, Any]) -> Table:
    title = f"Labelled, {labelled['n']:,} rows: share right in %, B − A in points"
    table = Table("", "n", "A", "B", "B − A (95 %)", "p", title=title, title_justify="left")
    table.add_row("label", *_cells(labelled["accuracy"]))
    table.add_row("label, macro", *_cells(labelled["macro_recall"]))
    table.add_row("group", *_cells(labelled["group_accuracy"]))
    table.add_row("group, macro", *_cells(labelled["group_macro_recall"]))
    for kind, named in {"label": labelled["labels"], **labelled["segments"]}.items():
        table.add_section()
        table.add_row(Text(f"by {kind}"), style="bold")
        for name, each in named.items():
            table.add_row(Text(f"  {name}"), *_cells(each))
    return table


def _cells(each: dict[str, Any]) -> list[str]:
    shares = [f"{each['n']:,}", f"{each['a'] * 100:.1f}", f"{each['b'] * 100:.1f}"]
    if each.get("only_a_is_right") == each.get("only_b_is_right") == 0:
        return [*shares, "same rows", ""]
    points = (each[name] * 100 for name in ("difference", "low", "high"))
    p = f"{each['p']:.3f}" if "p" in each else ""
    return [*shares, "{:+.2f} ({:+.2f}…{:+.2f})".format(*points), p]


def _changed(title: str, changed: list[dict[str, Any]]) -> Table:
    table = Table("query", "times", "A", "B", title=title, title_justify="left")
    for each in changed[:_SHOWN]:
        sides = [Text(f"{each[side]['intent']} {each[side]['confidence']:.2f}") for side in ("a", "b")]
        table.add_row(Text(each["query"]), f"{each['count']:,}", *sides)
    return table
