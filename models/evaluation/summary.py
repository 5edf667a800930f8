"""What ``evaluate`` says to its reader on standard error; the document has all of it and more.

Names go into tables as ``Text``: in a string "[/b]" would be markup, and ":gift:" an emoji.
"""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

# More groups than this don't fit a terminal; the document has them.
_MOST_COLUMNS = 6


def show(report: dict[str, Any], console: Console | None = None) -> None:
    console = console or Console(stderr=True, highlight=False, emoji=False)
    scores = report["scores"]
    console.print(f"{report['model']}: {scores['n']:,} rows of {report['table']['path']}", markup=False, soft_wrap=True)
    for note in report["notes"]:
        console.print(f"note: {note}", markup=False, soft_wrap=True)
    if (found := report.get("estimated_priors")) is not None:
        console.print(
            f"estimated from {found['queries']:,} unlabelled queries: {_shares(found['groups'])}", markup=False
        )
    if report["priors"] is not None:
        console.print(f"all but the mixes is of confidence corrected for: {_shares(report['priors'])}", markup=False)
    console.print(_overall(report))
    console.print(_labels(scores))
    console.print(_segments(report))
    if "redirects" in report:
        console.print(_redirects(report["redirects"]))
    console.print(_mixes(report["mixes"]))


def percent(share: dict[str, Any] | None) -> str:
    """ "93.1 % (92.6-93.5)", of a share with its interval."""
    if share is None or share["value"] is None:
        return "–"
    return f"{share['value'] * 100:.1f} % ({share['low'] * 100:.1f}–{share['high'] * 100:.1f})"


def _shares(shares: dict[str, float]) -> str:
    named = [f"{name} {value * 100:.1f} %" for name, value in list(shares.items())[: 2 * _MOST_COLUMNS]]
    return ", ".join(named) + ("" if len(named) == len(shares) else ", …")


def _overall(report: dict[str, Any]) -> Table:
    scores = report["scores"]
    table = Table("score", "value (95 % interval)", title="Overall", title_justify="left")
    table.add_row("accuracy", percent(scores["accuracy"]))
    table.add_row("macro recall", percent(scores["macro_recall"]))
    table.add_row("macro F1", f"{scores['macro_f1'] * 100:.1f} %")
    table.add_row("macro recall of the groups", percent(scores["group_macro_recall"]))
    for name, group in scores["groups"].items():
        table.add_row(Text(f"  recall of {name}, n = {group['recall']['n']:,}"), percent(group["recall"]))
        if group["label_accuracy"] != group["recall"]:
            table.add_row("    its exact label", percent(group["label_accuracy"]))
    table.add_row("ECE of intents / of groups", f"{scores['ece']:.3f} / {scores['group_ece']:.3f}")
    abstain = scores["abstain"]
    table.add_row(f"answered, abstaining under {abstain['threshold']:.2f}", percent(abstain["answered"]))
    if abstain["group_thresholds"]:
        asked = ", ".join(f"{name} {threshold:.2f}" for name, threshold in abstain["group_thresholds"].items())
        table.add_row(Text("  and under, of groups"), Text(asked))
    table.add_row("  of these right", percent(abstain["accuracy"]))
    table.add_row("  wrong and sure, of all", percent(abstain["wrong_and_sure"]))
    if (found := report.get("out_of_scope")) is not None:
        table.add_row(f"out-of-scope AUROC, n = {found['out_of_scope']:,}", f"{found['auroc']:.4f}")
        at = next(value for name, value in found.items() if name.startswith("at_"))
        table.add_row("  recall at 95 % in-scope accuracy", percent(at and at["recall"]))
    return table


def _labels(scores: dict[str, Any]) -> Table:
    table = Table("label", "n", "recall", "precision", "F1", title="Labels", title_justify="left")
    for name, each in scores["labels"].items():
        f1 = "–" if each["f1"] is None else f"{each['f1'] * 100:.1f} %"
        table.add_row(Text(name), f"{each['recall']['n']:,}", percent(each["recall"]), percent(each["precision"]), f1)
    return table


def _segments(report: dict[str, Any]) -> Table:
    """A column for each group's recall where there is room for them."""
    groups = list(report["scores"]["groups"])
    shown = groups if len(groups) <= _MOST_COLUMNS else []
    columns = [Column(Text(group)) for group in shown]
    table = Table("segment", "n", "label right", *columns, title="Segments: accuracy, recall of groups in %")
    table.title_justify = "left"
    for kind, named in report["segments"].items():
        table.add_section()
        table.add_row(Text(f"by {kind}" if kind != "perturbed" else kind), style="bold")
        for name, each in named.items():
            if each["n"] == 0:
                table.add_row(Text(f"  {name}"), "0")
                continue
            recalls = [each["group_recall"].get(group, {}).get("value") for group in shown]
            cells = ["–" if recall is None else f"{recall * 100:.1f}" for recall in recalls]
            table.add_row(Text(f"  {name}"), f"{each['n']:,}", percent(each["accuracy"]), *cells)
    return table


def _redirects(redirects: dict[str, Any]) -> Table:
    title = Text(f"False redirects: {redirects['home']} queries sent to another group")
    table = Table("thresholds", "false redirects", "recall of the others", title=title, title_justify="left")
    for name, each in redirects["settings"].items():
        recall = ", ".join(
            f"{group} {share['value'] * 100:.1f}"
            + (f" at {each['thresholds'][group]:.2f}" if "thresholds" in each else "")
            for group, share in list(each["recall"].items())[:_MOST_COLUMNS]
        )
        table.add_row(Text(name), percent(each["false_redirects"]), Text(recall))
    return table


def _mixes(mixes: dict[str, Any]) -> Table:
    title = "Confidence under other mixes, uncorrected → corrected for the mix"
    table = Table(
        "mix", "worth rows", "ECE of intents", "ECE of groups", "group right", title=title, title_justify="left"
    )
    for name, mix in mixes.items():
        if mix is None:
            table.add_row(Text(name), "0", "a group has no rows")
            continue
        before, after = mix["uncorrected"], mix["corrected"]
        table.add_row(
            Text(name),
            f"{mix['effective_n']:,.0f}",
            f"{before['ece']:.3f} → {after['ece']:.3f}",
            f"{before['group_ece']:.3f} → {after['group_ece']:.3f}",
            f"{before['group_accuracy'] * 100:.1f} → {after['group_accuracy'] * 100:.1f} %",
        )
    return table
