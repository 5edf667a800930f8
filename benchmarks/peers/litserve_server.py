"""LitServe with the dense graph: FastAPI processes in front, a process for each copy of the model behind a queue."""

from __future__ import annotations

from typing import Any

import orjson
from litserve import LitAPI, LitServer
from starlette.responses import Response

from benchmarks.peers.engine import load
from benchmarks.peers.settings import ROUTE, PeerSettings


class Intent(LitAPI):  # type: ignore[misc]  # untyped here: it is installed in the peer's environment only
    def setup(self, device: str) -> None:
        self._classifier = load()

    def decode_request(self, request: dict[str, str]) -> str:
        return request["query"]

    def batch(self, inputs: list[str]) -> list[str]:
        return inputs

    def predict(self, x: list[str]) -> list[dict[str, Any]]:
        return self._classifier.classify(x)

    def unbatch(self, output: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return output

    def encode_response(self, output: dict[str, Any]) -> Response:
        # A finished response skips FastAPI's own encoder, which costs more than all the rest of the reply.
        return Response(orjson.dumps(output), media_type="application/json")


def main() -> None:
    settings = PeerSettings.from_environment()
    api = Intent(max_batch_size=settings.tuning.max_batch, batch_timeout=settings.tuning.wait_ms / 1e3, api_path=ROUTE)
    # fast_queue is what its documentation says to use for more than a hundred requests a second.
    server = LitServer(api, accelerator="cpu", devices=1, workers_per_device=settings.tuning.processes, fast_queue=True)
    server.run(
        host="127.0.0.1",
        port=settings.port,
        num_api_servers=1,
        log_level="warning",
        generate_client_file=False,
        access_log=False,
    )


if __name__ == "__main__":
    main()
