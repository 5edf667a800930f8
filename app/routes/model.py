"""``GET /v1/model``: what is running, as it really runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter


def model_router(describe: Callable[[], dict[str, Any]]) -> APIRouter:
    router = APIRouter()

    @router.get("/v1/model", summary="Bundle, target, labels, groups, buckets, quality and effective settings")
    async def model() -> dict[str, Any]:
        return describe()

    return router
