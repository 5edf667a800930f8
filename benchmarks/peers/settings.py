"""How a peer is run, handed over in its environment: the harness writes it, the peer's own processes read it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

PREFIX = "PEER_"
ROUTE = "/intent"


@dataclass(frozen=True, slots=True)
class Tuning:
    """What a peer leaves to whoever runs it."""

    processes: int  # copies of the model
    threads: int  # of each copy
    max_batch: int
    wait_ms: int  # how long a batch that isn't full is waited for

    def __str__(self) -> str:
        return f"{self.processes}x{self.threads} batch {self.max_batch} wait {self.wait_ms}"


@dataclass(frozen=True, slots=True)
class PeerSettings:
    model: Path  # what ``dense.build`` wrote
    warm: Path  # where each process that is warm leaves a file
    port: int
    tuning: Tuning

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> PeerSettings:
        given = {
            name.removeprefix(PREFIX).lower(): value for name, value in environment.items() if name.startswith(PREFIX)
        }
        model, warm, port = Path(given.pop("model")), Path(given.pop("warm")), int(given.pop("port"))
        return cls(model, warm, port, Tuning(**{name: int(value) for name, value in given.items()}))

    def as_environment(self) -> dict[str, str]:
        given = {"model": self.model, "warm": self.warm, "port": self.port, **asdict(self.tuning)}
        return {PREFIX + name.upper(): str(value) for name, value in given.items()}
