"""One module per engine: how the packed graph becomes what that engine runs."""

from __future__ import annotations

import importlib
from typing import cast

from models.compiling.order import Order
from models.compiling.summary import Summary
from models.compiling.targets.base import Target


def make_target(order: Order, summary: Summary) -> Target:
    """The target that is ordered. Imports its engine's compiler, and no other's."""
    if order.chip is not None:
        from models.compiling.targets.neuron import NeuronTarget

        return NeuronTarget(order, order.chip, summary)
    return cast(Target, importlib.import_module(f"models.compiling.targets.{order.target}"))
