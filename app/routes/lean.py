"""Lean routes: documented and validated as any FastAPI route, without FastAPI's own request handling.

FastAPI's request handling costs several times what the rest of this service does beside the model, so the routes that
every query takes go around it: the application's outermost callable sends them here (``app/main.py``), and FastAPI
knows them by their schemas only.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import orjson
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from starlette.types import Message, Receive, Scope, Send

from app.error_handlers import CONTENT_TYPE as PROBLEM_CONTENT_TYPE
from app.error_handlers import problem_document, problem_headers
from app.errors import InvalidField, MalformedBody, NotReady, PayloadTooLarge, UnsupportedMediaType
from app.metrics import NO_SOURCE
from app.request_id import request_id_of
from app.schemas import Problem
from app.stages import Stages
from app.text import replace_lone_surrogates

logger = logging.getLogger(__name__)

JSON_HEADERS = ((b"content-type", b"application/json"),)
CLIENT_GONE = 499  # nginx's status for it: nobody reads the answer, but the metrics should say why there was none


class Answer(NamedTuple):
    """A 200 reply in the making."""

    document: Any
    stages: Stages
    source: str
    headers: Sequence[tuple[bytes, bytes]] = ()


class Observer(Protocol):
    """Told of every request once its reply is written."""

    def __call__(self, *, route: str, status: int, source: str, stages: Stages) -> None: ...


_Request = TypeVar("_Request", bound=BaseModel)


class LeanHandler:
    """The ASGI callable of one lean route: body in, ``answer`` awaited, reply out.

    ``answer`` gets the request, and the seconds that it has waited for the event loop since it had been read.
    ``log_queries`` writes the request into the log where the service fails on it, personal data as it is.
    ``is_draining()`` makes replies say ``Connection: close``, so that clients leave a server that stops.
    """

    def __init__(
        self,
        route: str,
        model: type[_Request],
        answer: Callable[[_Request, float], Awaitable[Answer]],
        *,
        max_body_bytes: int,
        observe: Observer,
        is_draining: Callable[[], bool],
        log_queries: bool = False,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._route = route
        self._model: type[BaseModel] = model
        self._answer: Callable[[Any, float], Awaitable[Answer]] = answer
        self._max_body_bytes = max_body_bytes
        self._observe = observe
        self._is_draining = is_draining
        self._log_queries = log_queries
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = self._clock()
        status, source, stages = CLIENT_GONE, NO_SOURCE, Stages()
        request: BaseModel | None = None
        body: bytes | None = None
        connection = scope.get("query_intent.connection")
        try:
            try:
                _check_headers(scope, limit=self._max_body_bytes)
                body = await read_body(receive, limit=self._max_body_bytes)
                if body is None:
                    return
                started = scope.get("query_intent.read_at", started)
                request = decode(self._model, body)
                if connection is not None:
                    task = asyncio.current_task()
                    connection.on_disconnect = task.cancel if task else None
                answer = await self._answer(request, self._clock() - started)
                status, source, stages = 200, answer.source, answer.stages
                payload, headers = orjson.dumps(answer.document), [*JSON_HEADERS, *answer.headers]
            except asyncio.CancelledError:
                if connection is None or connection.transport.is_closing():
                    return  # the client went away; the queue has forgotten the query by now
                status, payload, headers = _problem(NotReady("the service is stopping"), scope)
            except Exception as error:
                status, payload, headers = _problem(error, scope)
                if status == 500 and self._log_queries and request is not None:
                    logger.error("it failed on this request", extra={"request": request.model_dump()})
            finally:
                if connection is not None:
                    connection.on_disconnect = None
            stages = Stages(stages.tokenize, stages.queue, stages.inference, self._clock() - started)
            headers += [
                (b"content-length", b"%d" % len(payload)),
                (b"x-request-id", request_id_of(scope).encode("ascii")),
                (b"server-timing", stages.server_timing()),
            ]
            # What is left of a body that was refused unread can't be told from the next request.
            if self._is_draining() or body is None:
                headers.append((b"connection", b"close"))
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": payload})
        finally:
            self._observe(route=self._route, status=status, source=source, stages=stages)


class LeanRoute(APIRoute):
    """FastAPI's view of a lean route: its place in ``/openapi.json`` and its handler."""

    def __init__(
        self,
        path: str,
        handler: LeanHandler,
        *,
        body: type[BaseModel],
        reply: type[BaseModel],
        summary: str,
        statuses: tuple[int, ...],
    ) -> None:
        async def endpoint(body: Any) -> None:
            raise AssertionError("a lean route was served by FastAPI. This is a bug.")

        endpoint.__annotations__ = {"body": body}
        # A reference instead of FastAPI's "model", which would put the schema under application/json.
        problem = {"schema": {"$ref": f"#/components/schemas/{Problem.__name__}"}}
        problems: dict[int | str, dict[str, Any]] = {
            status: {"content": {PROBLEM_CONTENT_TYPE: problem}} for status in statuses
        }
        super().__init__(
            path,
            endpoint,
            methods=["POST"],
            response_model=reply,
            summary=summary,
            description=body.__doc__ or "",
            responses=problems,
        )
        self.handler = handler
        self.app = handler


def _problem(error: Exception, scope: Scope) -> tuple[int, bytes, list[tuple[bytes, bytes]]]:
    """Status, body and headers of the reply to a request that failed with ``error``."""
    request_id = request_id_of(scope)
    document = problem_document(error, request_id=request_id)
    status: int = document["status"]
    if status == 500:
        logger.error("request %s failed", request_id, exc_info=error)
    return status, orjson.dumps(document), problem_headers(document)


def decode(model: type[_Request], body: bytes) -> _Request:
    """The request in ``body``. Raises ``MalformedBody`` or ``InvalidField`` for the first field that is wrong."""
    try:
        try:
            if b"NaN" not in body and b"Infinity" not in body:  # which pydantic takes for JSON
                return model.model_validate_json(body)
        except ValidationError as error:
            if error.errors(include_url=False, include_input=False)[0]["type"] != "json_invalid":
                raise
        return model.model_validate(_parse_leniently(body))
    except ValidationError as error:
        raise _translate(error.errors(include_url=False)[0]) from None


def _translate(problem: ErrorDetails) -> InvalidField | MalformedBody:
    """Pydantic's description of what is wrong with a field, in the service's own terms."""
    field = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in problem["loc"]).lstrip(".")
    if not field:
        return MalformedBody("the body is JSON, but not an object")
    if problem["type"] == "missing":
        return InvalidField(field, "is missing")
    context = problem.get("ctx", {})
    limit = next((context[key] for key in ("ge", "le", "min_length") if key in context), None)
    value = problem["input"]
    return InvalidField(field, problem["msg"], value="null" if value is None else value, limit=limit)


def _parse_leniently(body: bytes) -> Any:
    """What the strict parser refused: JSON may carry half a surrogate pair, which is replaced, and nothing else."""
    try:
        text = body.decode("utf-8")
        return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_replace_in_pairs)
    except UnicodeDecodeError as error:
        raise MalformedBody(f"the body is not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise MalformedBody(f"the body is not JSON: {error}") from None
    except RecursionError:
        raise MalformedBody("the body is nested too deeply") from None
    except ValueError:
        raise MalformedBody("the body holds a number of too many digits") from None


def _replace_in_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {replace_lone_surrogates(name): _replace(value) for name, value in pairs}


def _replace(value: Any) -> Any:
    if isinstance(value, str):
        return replace_lone_surrogates(value)
    return [_replace(item) for item in value] if isinstance(value, list) else value


def _refuse_constant(name: str) -> Any:
    raise MalformedBody(f"the body is not JSON: {name} is no JSON value")


async def read_body(receive: Receive, *, limit: int) -> bytes | None:
    """The whole body, or ``None`` when the client left.

    Raises ``PayloadTooLarge`` before reading past ``limit`` bytes.
    """
    message: Message = await receive()
    if message["type"] == "http.disconnect":
        return None
    body: bytes = message.get("body", b"")
    if not message.get("more_body", False) and len(body) <= limit:
        return body
    parts, size = [body], len(body)
    while size <= limit and message.get("more_body", False):
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        size += len(parts[-1])
    if size > limit:
        raise PayloadTooLarge(f"a body of more than {limit} bytes")
    return b"".join(parts)


def _check_headers(scope: Scope, *, limit: int) -> None:
    """Refuse by its headers what need not be read.

    Raises ``PayloadTooLarge`` for a body announced as more than ``limit`` bytes, ``UnsupportedMediaType`` for anything
    but JSON or nothing said.
    """
    for name, value in scope["headers"]:
        if name == b"content-type":
            if value == b"application/json":
                continue
            media_type = value.partition(b";")[0].strip().lower()
            if media_type != b"application/json" and not media_type.endswith(b"+json"):
                shown = media_type.decode("latin-1")
                raise UnsupportedMediaType(f"content-type is {shown[:64]!r}; send application/json")
        elif name == b"content-length" and value.isdigit() and int(value) > limit:
            raise PayloadTooLarge(f"a body of {int(value)} bytes; at most {limit} are accepted")
