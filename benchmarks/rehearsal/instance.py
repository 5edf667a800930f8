"""An instance at an address of its own, where it may be started again and again, as a balancer's target is."""

from __future__ import annotations

import os
import signal
import socket
import time
from contextlib import ExitStack

from benchmarks.service import Service


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


class Instance:
    """``query-intent serve`` with these settings; the fallback is on, as it is unless somebody turns it off."""

    def __init__(self, name: str, /, **settings: object) -> None:
        self.name = name
        self.port, self.ops_port = free_port(), free_port()
        self._settings: dict[str, object] = {"port": self.port, "ops_port": self.ops_port, "fallback": "on"} | settings
        self._running = ExitStack()

    def __enter__(self) -> Instance:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def start(self, **settings: object) -> None:
        """Until it is ready. Raises ``RuntimeError`` when it ended before; ``settings`` are for this time only."""
        self.service = self._running.enter_context(Service(**(self._settings | settings)))

    def stop(self) -> float:
        """SIGTERM; seconds until it has ended, with exit code 0."""
        started = time.perf_counter()
        self.service.send_signal(signal.SIGTERM)
        if code := self.service.wait():
            raise RuntimeError(f"instance {self.name} ended with {code}")
        self._running.close()
        return time.perf_counter() - started

    def kill(self) -> None:
        """All of its processes, as when its host is gone."""
        for pid in self.service.processes():
            os.kill(pid, signal.SIGKILL)
        self.service.wait()
        self._running.close()
