"""mosec with the dense graph: HTTP and batching in Rust, a process for each copy of the model."""

from __future__ import annotations

import os
from typing import Any

import orjson
from mosec import Server, Worker

from benchmarks.peers.engine import load
from benchmarks.peers.settings import ROUTE, PeerSettings


class Intent(Worker):  # type: ignore[misc]  # untyped here: it is installed in the peer's environment only
    def __init__(self) -> None:
        super().__init__()
        self._classifier = load()

    def deserialize(self, data: bytes) -> Any:
        return orjson.loads(data)

    def serialize(self, data: Any) -> bytes:
        return orjson.dumps(data)

    def forward(self, data: list[dict[str, str]]) -> list[dict[str, Any]]:
        return self._classifier.classify([each["query"] for each in data])


def main() -> None:
    settings = PeerSettings.from_environment()
    # What mosec reads from its command line it also takes from here.
    os.environ |= {"MOSEC_ADDRESS": "127.0.0.1", "MOSEC_PORT": str(settings.port), "MOSEC_LOG_LEVEL": "warning"}
    server = Server()
    server.append_worker(
        Intent,
        num=settings.tuning.processes,
        max_batch_size=settings.tuning.max_batch,
        max_wait_time=settings.tuning.wait_ms,
        route=ROUTE,
    )
    server.run()


if __name__ == "__main__":
    main()
