"""What is simulated: a service's processes, replicas, connections and costs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deployment:
    """Workers and their replicas; times in seconds.

    - ``replicas`` of each worker;
    - ``shared_cores``: so many cores for event loops and replicas together, ``None`` where each has its own;
    - ``request_s``: what a request costs its event loop, from reading it to writing the reply;
    - ``row_s``: what a finished row costs the event loop beside its requests.
    """

    workers: int
    replicas: int
    shared_cores: int | None
    connections: int
    request_s: float
    row_s: float
    slo_s: float
    timeout_s: float
    queue_tokens: int
