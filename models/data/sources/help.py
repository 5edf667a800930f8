"""Requests to a shop: generated ones to train on, real ones held out."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from models.data.sources.example import Example, HeldOut, clean, example, read_csv
from models.data.style import cut_carrier

_BITEXT = {
    "order_tracking": "track_order delivery_period delivery_options",
    "order_change": "cancel_order change_order change_shipping_address set_up_shipping_address check_cancellation_fee",
    "returns_refunds": "get_refund track_refund check_refund_policy",
    "payment_invoice": "check_invoice get_invoice check_payment_methods payment_issue",
    "account": "create_account delete_account edit_account switch_account recover_password registration_problems "
    "newsletter_subscription",
    "contact": "contact_customer_service contact_human_agent complaint review",
}
_BITEXT_LABELS = {intent: label for label, intents in _BITEXT.items() for intent in intents.split()}


def read_bitext(folder: Path, chance: random.Random) -> Iterator[Example]:
    """Generated help requests. Offensive rows (tag W) are dropped; ``place_order`` is ambiguous and left out.

    The generator knows four order numbers and a handful of names: numbers are drawn anew or dropped, and the family is
    the template with its entity masked.
    """
    for name in ("train", "dev", "test"):
        for row in read_csv(folder / f"{name}.csv"):
            label = _BITEXT_LABELS.get(row["intent"])
            if label is None or "W" in row["tags"]:
                continue
            text, entity = row["utterance"], row["entity_value"]
            family = cut_carrier(clean(text.replace(entity, " ") if entity else text))
            if entity.isdigit():
                number = str(chance.randrange(10**4, 10 ** chance.randint(5, 12)))
                text = text.replace(entity, number if chance.random() < 0.5 else "")
            text = clean(text)
            yield example(text, label, "bitext", style="keyword" if "K" in row["tags"] else None, family=family)
            if cut_carrier(text) != text:
                yield example(cut_carrier(text), label, "bitext", style="keyword", family=family)


_HINT3 = {
    "order_tracking": "ORDER_STATUS DELAY_IN_PARCEL DELAY_IN_DELIVERY RESUME_DELIVERY CHECK_PINCODE "
    "INTERNATIONAL_SHIPPING",
    "order_change": "CANCEL_ORDER MODIFY_ADDRESS",
    "returns_refunds": "REFUNDS_RETURNS_REPLACEMENTS RETURN_EXCHANGE",
    "payment_invoice": "MODES_OF_PAYMENTS PAYMENT_AND_BILL EMI COD",
    "account": "SIGN_UP PORTAL_ISSUE",
    "contact": "CALL_CENTER CHAT_WITH_AGENT",
    "product_search": "RECOMMEND_PRODUCT IMMUNITY EXPIRY_DATE ORIGINAL_PRODUCT SIDE_EFFECT ORTHO_FEATURES "
    "ERGO_FEATURES COMPARISON SIZE_CUSTOMIZATION WHAT_SIZE_TO_ORDER MATTRESS_COST PRODUCT_VARIANTS PILLOWS OFFERS",
}
_HINT3_LABELS = {name: label for label, names in _HINT3.items() for name in names.split()}


def read_hint3(folder: Path, _: random.Random) -> Iterator[Example]:
    """Real messages to two shops' chatbots, held out: the training files for development, the test files for the score.

    Left out as nobody's label or everybody's: leads, franchise and stores, diet advice, warranty and trial, the
    company, order taking (half of it asks how to pay), and ``NO_NODES_DETECTED``, which only says that
    the bot had no answer.
    """
    for shop in ("curekart", "sofmattress"):
        for name in ("train", "test"):
            held_out: HeldOut = "development" if name == "train" else "test"
            for row in read_csv(folder / f"{shop}_{name}.csv"):
                if label := _HINT3_LABELS.get(row["label"]):
                    yield example(row["sentence"], label, "hint3", held_out=held_out)
