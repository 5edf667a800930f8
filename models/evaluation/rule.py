"""Go or no-go: the rule by which ``compare`` decides whether B may take A's place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Rule:
    """``max_drop`` of accuracy that B may lose for certain, ``max_changed`` share of traffic that may change group."""

    max_drop: float
    max_changed: float

    def __str__(self) -> str:
        return (
            f"no-go when the 95 % interval of B − A accuracy on labelled queries reaches under −{self.max_drop:g}, "
            f"or when more than {self.max_changed:g} of the traffic changes its group"
        )

    def reasons(self, report: dict[str, Any]) -> list[str]:
        """What speaks against B, in words; nothing does when it's empty."""
        found = []
        if (labelled := report.get("labelled")) is not None and (low := labelled["accuracy"]["low"]) < -self.max_drop:
            found.append(f"accuracy may drop by {-low:.4f}, {self.max_drop:g} is allowed")
        changes = report["traffic"]["group_changes"]
        if changes > self.max_changed:
            found.append(f"{changes:.4f} of the traffic changes its group, {self.max_changed:g} is allowed")
        return found
