"""``/healthz``: this process answers. ``/readyz``: send it traffic, or not, and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from app.health import Readiness


class Health(BaseModel):
    status: Literal["alive"] = "alive"


class ReadinessReply(BaseModel):
    ready: bool
    reason: Annotated[str, Field(description="Why not, for a person; empty when ready.")]
    replicas_ready: int
    replicas: int
    replicas_out: Annotated[
        list[str],
        Field(
            description="Who takes no rows any more, as the metrics' label `replica` has it: `worker.replica`, or "
            "`worker` where none of its replicas does. `core_faults_total` and the log say why."
        ),
    ]


def health_router(readiness: Callable[[], Readiness]) -> APIRouter:
    router = APIRouter()

    @router.get("/healthz", summary="Alive")
    async def healthz() -> Health:
        return Health()

    @router.get("/readyz", summary="Ready for traffic", responses={503: {"model": ReadinessReply}})
    async def readyz(response: Response) -> ReadinessReply:
        state = readiness()
        if not state.is_ready:
            response.status_code = 503
        return ReadinessReply(
            ready=state.is_ready,
            reason=state.reason,
            replicas_ready=state.replicas_ready,
            replicas=state.replicas,
            replicas_out=list(state.out),
        )

    return router
