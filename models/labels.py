"""The labels of the shop's search box: what each means and the group a page switches on."""

from __future__ import annotations

from typing import NamedTuple


class Label(NamedTuple):
    name: str
    definition: str
    group: str


# The order is the order of the logits; a new label goes to the end.
LABELS: tuple[Label, ...] = (
    Label("product_search", "wants to find or buy a physical product", "product_search"),
    Label("media", "wants a book, film, song or another title to read, watch or hear", "media"),
    Label("order_tracking", "asks where an order is or when it comes", "help"),
    Label("order_change", "wants to change or cancel an order or its address", "help"),
    Label("returns_refunds", "wants to send something back or get the money back", "help"),
    Label("payment_invoice", "asks about paying, a charge or an invoice", "help"),
    Label("account", "has a matter with the account, the password or the newsletter", "help"),
    Label("contact", "wants to reach a person, complain or leave a review", "help"),
    Label("other", "asks what no shop answers", "other"),
)
GROUPS: tuple[str, ...] = tuple(dict.fromkeys(label.group for label in LABELS))
# In a table: the text has none of them.
OUTSIDE_LABEL = "outside"
