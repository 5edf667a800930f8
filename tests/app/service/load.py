"""Clients that ask without a pause, each on a thread of its own, and what they saw."""

from __future__ import annotations

import threading
from collections import Counter

from benchmarks.raw_http import Closed, Connection, Reply, post
from tests.app.service.running import PATIENCE_S, Address


class Clients:
    """``count`` of them until ``stop`` is called; each connects anew when its connection is closed or broken."""

    def __init__(self, address: Address, count: int, *, timeout_ms: int = 10_000) -> None:
        self.replies: list[Reply] = []
        self.broken = 0  # connections that ended before the reply
        self.hung = 0  # requests on which nothing happened at all
        self._address = address
        self._timeout_ms = timeout_ms
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(count)]

    def __enter__(self) -> Clients:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    @property
    def statuses(self) -> Counter[int]:
        return Counter(reply.status for reply in list(self.replies))

    def _run(self, number: int) -> None:
        data = post("/v1/intent", {"query": f"shoes {number}", "timeout_ms": self._timeout_ms})
        connection: Connection | None = None
        while not self._stopping.is_set():
            reply = None
            try:
                connection = connection or Connection(self._address, timeout_s=PATIENCE_S)
                reply = connection.request(data)
                assert reply.status != 200 or reply.json()["query"] == f"shoes {number}"
                self.replies.append(reply)
            except TimeoutError:
                self.hung += 1
            except (Closed, OSError):
                self.broken += 1
                self._stopping.wait(0.005)  # of a server that is gone
            if connection and (reply is None or reply.headers.get("connection") == "close"):
                connection.close()
                connection = None
        if connection:
            connection.close()
