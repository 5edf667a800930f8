"""What clients of the proxy see while instances are restarted, killed, and never become ready."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.rehearsal.bundles import with_a_wrong_golden_answer
from benchmarks.rehearsal.instance import Instance
from benchmarks.rehearsal.proxy import Proxy
from benchmarks.run import load

ROUND_S = 15.0  # of load, again and again until a phase is over
ROUNDS_OF_RESTARTS = 3
SHORT_S = 6.0


class Rollout:
    """Phases on the two instances behind ``proxy``, each under ``rate`` requests a second, Poisson."""

    def __init__(self, proxy: Proxy, instances: tuple[Instance, Instance], *, rate: float) -> None:
        self._proxy = proxy
        self._instances = instances
        self._rate = rate

    def restart(self, *, requests: int) -> dict[str, Any]:
        """One instance after the other, three times, and until there were so many requests."""
        stops: list[float] = []

        def restart_all() -> None:
            for _ in range(ROUNDS_OF_RESTARTS):
                for instance in self._instances:
                    stops.append(instance.stop())
                    instance.start()
                    self._proxy.wait_for(instance, "UP")

        result = self._under_load(restart_all, self._proxy.url, requests=requests)
        return result | {"restarts": len(stops), "slowest_stop_s": round(max(stops), 2)}

    def kill(self, url: str) -> dict[str, Any]:
        """SIGKILL for one, found out by health checks; behind ``url``, one of the proxy's."""
        victim = self._instances[0]

        def kill() -> None:
            victim.kill()
            self._proxy.wait_for(victim, "DOWN")
            time.sleep(SHORT_S / 2)

        result = self._under_load(kill, url)
        victim.start()
        self._proxy.wait_for(victim, "UP")
        return result

    def never_ready(self, folder: Path) -> dict[str, Any]:
        """One is replaced by a model that does not give its golden answers, and tried again and again, as ECS does."""
        broken = with_a_wrong_golden_answer(folder / "broken")
        replaced = self._instances[1]
        attempts = 0

        def try_in_vain() -> None:
            nonlocal attempts
            replaced.stop()
            deadline = time.monotonic() + SHORT_S
            while time.monotonic() < deadline:
                attempts += 1
                try:
                    replaced.start(target="cpu", bundle=broken)
                except RuntimeError:
                    continue
                raise RuntimeError("a model that gives wrong golden answers became ready")

        result = self._under_load(try_in_vain, self._proxy.url)
        replaced.start()
        self._proxy.wait_for(replaced, "UP")
        return result | {"attempts": attempts}

    def _under_load(self, act: Callable[[], None], url: str, *, requests: int = 0) -> dict[str, Any]:
        """What became of the requests while ``act`` ran; load starts before it and ends after it."""
        outcomes: Counter[str] = Counter()
        slowest_ms, sent = 0.0, 0
        before = self._answered()
        with ThreadPoolExecutor() as threads:
            acting: Future[None] | None = None
            while acting is None or not acting.done() or sent < requests:
                seconds = ROUND_S if requests else SHORT_S
                loading = threads.submit(load, url, self._rate, seconds, None, sent, warmup=0)
                if acting is None:
                    while self._answered() == before and not loading.done():
                        time.sleep(0.05)
                    acting = threads.submit(act)
                result = loading.result()
                outcomes.update(result["statuses"] | result["errors"])
                sent += result["scheduled"]
                slowest_ms = max(slowest_ms, result["latency_ms"]["max"])
            acting.result()
        return {
            "requests": sent,
            "failed": sent - outcomes["200"],
            "outcomes": dict(sorted(outcomes.items())),
            "slowest_ms": slowest_ms,
        }

    def _answered(self) -> int:
        """By one instance; called while both serve."""
        return self._instances[1].service.requests()
